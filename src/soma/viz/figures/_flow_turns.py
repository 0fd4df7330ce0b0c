"""What nodes of a flow did in their turns, as bars of a timeline: replies of models, and tools."""

from collections.abc import Sequence
from typing import NamedTuple

from soma.core import NodeId
from soma.tracking import JournalLine, ModelLine, Timing, ToolLine

_MOST_TOOLS = 12  # of a node, that have lanes of their own


class FlowTurns(NamedTuple):
    """Bars, and the lanes below that of a node: one for each of its tools."""

    timings: tuple[Timing, ...]
    lanes: dict[NodeId, tuple[str, ...]]


def flow_turns(journal: Sequence[JournalLine]) -> FlowTurns:
    """Return the turns of a flow; calls that were refused took no time, and have no bar."""
    asks = {line.node for line in journal if isinstance(line, ModelLine)}
    lanes: dict[NodeId, dict[str, str]] = {}  # of a node, by tool
    timings = []
    for line in journal:
        lane = line.node
        if isinstance(line, ToolLine) and line.outcome in ("ok", "error"):
            if lane in asks:
                tools = lanes.setdefault(line.node, {})
                name = line.call.name if len(tools) < _MOST_TOOLS else "others"
                lane = tools.setdefault(line.call.name, f"{line.node} ƒ {name}")
            error = "error" if line.outcome == "error" else None
            timings.append(_timing(line, lane, "tool", error))
        elif isinstance(line, ModelLine):
            timings.append(_timing(line, lane, "model", None))
    return FlowTurns(
        tuple(timings),
        {node: tuple(dict.fromkeys(tools.values())) for node, tools in lanes.items()},
    )


def _timing(line: ModelLine | ToolLine, lane: str, phase: str, error: str | None) -> Timing:
    return Timing(
        node=lane, phase=phase, start=line.start, seconds=line.seconds, cached=False, error=error
    )

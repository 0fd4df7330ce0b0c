"""What a run says of each node, for the pictures of its graph and of its modules."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from soma.core import NodeId
from soma.draw import counted
from soma.tracking import CacheActivity, RunRecord
from soma.viz._conversation import conversation
from soma.viz._graph_picture import NodeNote
from soma.viz._node_timings import NodeTiming, node_timings
from soma.viz._usage import NodeUsage, node_usage

Flags = Iterable[Mapping[str, Any]]


def graph_notes(record: RunRecord, flags: Flags) -> dict[NodeId, NodeNote]:
    """Return the notes of a graph's nodes: time, cache, failures and flags of health."""
    graph = record.graph()
    if graph is None:
        return {}
    turns = record.timings()
    timings = {one.node: one for one in node_timings(turns)}
    errors = {one.node: one.error for one in turns if one.failed}
    activity = {one.node: one for one in record.cache_activity()}
    said = conversation(record.journal())
    usage = {one.node: one for one in node_usage(said)}
    waiting = {one.node for one in said if one.outcome == "open"}
    given = [*flags]
    flagged, why = _by_node(given), _why(given)
    notes = {}
    for node in (one.id for one in graph.nodes):
        timing, looked = timings.get(node), activity.get(node)
        reasons = [errors.get(node), None if looked is None else looked.why, why.get(node)]
        notes[node] = NodeNote(
            seconds=None if timing is None else timing.seconds,
            cached=None if looked is None else _cached(looked),
            # A run that recorded no turn at all says nothing about a node.
            status=_status(node, timing, usage) if timings or usage else None,
            flags=flagged.get(node, ()),
            why="\n".join(filter(None, reasons)),
            turns=_turns(usage.get(node)),
            routes=usage[node].routes if node in usage else {},
            waits=node in waiting,
        )
    return notes


def _status(
    node: NodeId, timing: NodeTiming | None, usage: Iterable[NodeId]
) -> Literal["ran", "failed", "not run"]:
    """Return how it went with a node.

    Args:
        usage: nodes of a flow that did something; a turn has no timing before its end.
    """
    if timing is not None:
        return "failed" if timing.failed else "ran"
    has_begun = any(f"{one}.".startswith(f"{node}.") for one in usage)  # it, or a part of it
    return "ran" if has_begun else "not run"


def _turns(used: NodeUsage | None) -> str:
    if used is None or not used.turns:
        return ""
    tokens = f" · {counted(used.usage.tokens, 'token')}" if used.usage.tokens else ""
    return f"{counted(used.turns, 'turn')}{tokens}"


def flow_notes(node: NodeId, flags: Flags) -> dict[str, NodeNote]:
    """Return the notes of the submodules of a node, by path.

    Args:
        flags: of modules, `node/path`; those of the node itself are left out.
    """
    given = [*flags]
    why = _why(given)
    return {
        name.removeprefix(f"{node}/"): NodeNote(flags=found, why=why.get(name, ""))
        for name, found in _by_node(given).items()
        if name.startswith(f"{node}/")
    }


def _by_node(flags: Flags) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for flag in flags:
        found.setdefault(str(flag.get("node_id")), []).append(str(flag.get("flag")))
    return {node: tuple(dict.fromkeys(names)) for node, names in found.items()}


def _why(flags: Flags) -> dict[str, str]:
    """Return a line for each flag that says why it stands there."""
    found: dict[str, list[str]] = {}
    for flag in flags:
        if flag.get("why"):
            said = f"{flag.get('flag')}: {flag['why']}"
            found.setdefault(str(flag.get("node_id")), []).append(said)
    return {node: "\n".join(dict.fromkeys(said)) for node, said in found.items()}


def _cached(looked: CacheActivity) -> Literal["hit", "miss", "mixed"]:
    if looked.hits and looked.misses:
        return "mixed"
    return "hit" if looked.hits else "miss"

"""What ran when: a lane for each node, a bar for each of its turns."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from soma.core import NodeId
from soma.draw import Ink
from soma.tracking import RunRecord, Timing
from soma.viz._chart import Axis, Block, Blocks, Chart, Panel, Style
from soma.viz._durations import duration
from soma.viz.figures._flow_turns import flow_turns

MOST = 1500  # bars
_TIMES = "\N{MULTIPLICATION SIGN}"

_INKS: dict[str, Ink] = {
    "build": "series4",
    "fit": "series1",
    "forward": "series2",
    "train": "series3",
    "model": "series5",
    "tool": "series6",
}


class Turns(NamedTuple):
    """A bar: turns of one node that follow each other closely, mostly just one."""

    node: NodeId
    phase: str
    cached: bool
    failed: bool
    start: float
    end: float
    seconds: float  # of work
    turns: int

    @property
    def mean(self) -> float:
        """Seconds of one turn."""
        return self.seconds / self.turns


class GanttInfo(NamedTuple):
    """All bars of a run, by node and start."""

    run: str
    nodes: tuple[NodeId, ...]  # in topological order
    labels: tuple[str, ...]  # of the nodes, with the worker that one ran on
    bars: tuple[Turns, ...]
    turns: int  # what was recorded


def gantt_info(record: RunRecord) -> GanttInfo:
    """Return the bars of a run; close turns are joined until there are at most `MOST` bars."""
    flow = flow_turns(record.journal())
    told = {one.node for one in flow.timings}  # by what they did in their turns
    turns = [one for one in record.timings() if one.node not in told or one.failed]
    timings = [*turns, *flow.timings]
    graph = record.graph()
    known = {} if graph is None else {node.id: node.target for node in graph.nodes}
    by_start = sorted(timings, key=lambda one: one.start)
    nodes = dict.fromkeys([*known, *(one.node for one in by_start)]) if timings else {}
    below = {lane for lanes in flow.lanes.values() for lane in lanes} - {*known}
    ran = [
        lane
        for node in nodes
        if node not in below
        for lane in dict.fromkeys([node, *flow.lanes.get(node, ())])
    ]
    labels = [f"{one} on {known[one]}" if known.get(one) else one for one in ran]
    bars = tuple(_joined(by_start))
    return GanttInfo(record.name, tuple(ran), tuple(labels), bars, len(timings))


def gantt_chart(info: GanttInfo) -> Chart:
    """Return the chart of a run's turns."""
    lanes = {node: lane for lane, node in enumerate(info.nodes)}
    groups = [
        Blocks(
            name=_name(phase, cached, failed),
            ink="bad" if failed else _INKS.get(phase, "series7"),
            style=_style(cached, failed),
            blocks=tuple(_block(bar, lanes[bar.node]) for bar in bars),
        )
        for (failed, phase, cached), bars in groupby(sorted(info.bars, key=_meaning), key=_meaning)
    ]
    panel = Panel(
        title="",
        x=Axis(title="time since the run began", kind="seconds"),
        y=Axis(kind="category", categories=info.labels),
        blocks=tuple(groups),
        note=_note(info),
    )
    return Chart(
        title=f"Timeline of {info.run}",
        panels=(panel,) if info.bars else (),
        empty="no node ran",
    )


def _note(info: GanttInfo) -> str:
    if len(info.bars) == info.turns:
        return ""
    return f"{info.turns:,} turns in {len(info.bars):,} bars: close turns are drawn as one."


def _joined(timings: Sequence[Timing]) -> list[Turns]:
    """Join what lies closer and closer together until there are few enough bars."""
    bars = [
        Turns(one.node, one.phase, one.cached, one.failed, one.start, one.start + one.seconds,
              one.seconds, 1)
        for one in timings
    ]  # fmt: skip
    bars.sort(key=lambda bar: (bar.node, bar.start))
    length = max((bar.end for bar in bars), default=0.0)
    for share in (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 1.0):
        if len(bars) <= MOST:
            break
        bars = _closed(bars, length * share)
    return bars


def _closed(bars: list[Turns], gap: float) -> list[Turns]:
    """Join the bars of a node that mean the same and have at most `gap` between them.

    Phases alternate in a training with validation, so a bar looks past those of others.
    """
    open_bars: dict[tuple[object, ...], Turns] = {}
    done: list[Turns] = []
    for bar in bars:
        key = bar[:4]
        last = open_bars.get(key)
        if last is None or bar.start - last.end > gap:
            if last is not None:
                done.append(last)
            open_bars[key] = bar
        else:
            open_bars[key] = last._replace(
                end=max(last.end, bar.end),
                seconds=last.seconds + bar.seconds,
                turns=last.turns + bar.turns,
            )
    return sorted([*done, *open_bars.values()], key=lambda bar: (bar.node, bar.start))


def _meaning(bar: Turns) -> tuple[bool, str, bool]:
    return bar.failed, bar.phase, bar.cached


def _name(phase: str, cached: bool, failed: bool) -> str:
    if failed:
        return f"{phase}, failed"
    return f"{phase}, from the cache" if cached else phase


def _style(cached: bool, failed: bool) -> Style:
    if failed:
        return "failed"
    return "hollow" if cached else "plain"


def _block(bar: Turns, lane: int) -> Block:
    name = _name(bar.phase, bar.cached, bar.failed)
    times = (
        duration(bar.seconds) if bar.turns == 1 else f"{bar.turns:,} {_TIMES} {duration(bar.mean)}"
    )
    return Block(
        lane=lane,
        start=bar.start,
        end=bar.end,
        text=f"✕ {times}" if bar.failed else times,
        tooltip=f"{bar.node}\n{name}: {times}\nfrom {duration(bar.start)} on",
    )

"""What failed, where, and since which step: a bar for each flag, first by node, then inside."""

from itertools import groupby
from typing import Literal, NamedTuple

from soma.core import NodeId
from soma.draw import Ink, counted
from soma.health import NEUTRAL, AuditReport, Measurements, UnitId
from soma.viz._block_words import ASIDE
from soma.viz._chart import Axis, Block, Blocks, Chart, Panel, Style

MOST = 60  # bars of a panel
_NAMED = 4  # modules that a bar of a node names

Meaning = Literal["certain", "likely", "possible", "not observed"]
_LOOKS: dict[Meaning, tuple[Ink, Style]] = {
    "certain": ("bad", "plain"),
    "likely": ("warning", "plain"),
    "possible": ("warning", "hollow"),
    "not observed": ("series8", "hollow"),
}


class Flagged(NamedTuple):
    """One flag of a node, or of a module inside one."""

    where: str
    flag: str
    since: int
    meaning: Meaning
    detail: str  # on the bar, after the flag
    why: str


class HealthInfo(NamedTuple):
    """All flags of a run."""

    run: str
    first: int  # step
    last: int
    nodes: tuple[Flagged, ...]
    inside: tuple[Flagged, ...]  # worst first
    modules: int
    steps: int


def health_info(run: str, measured: Measurements, report: AuditReport) -> HealthInfo:
    """Return what a verdict has flagged, rolled up by node and module by module."""
    steps = [one.step for one in measured.steps] or [0]
    order = [(_node(measured, one.unit), one.name) for one in report.findings]
    rolled = sorted(report.rollup(), key=lambda row: order.index((row["node_id"], row["flag"])))
    nodes = [
        Flagged(row["node_id"], row["flag"], row["step"], _meaning(row["flag"], row["certainty"]),
                _inside(row["node_id"], row["filters"]), row["why"])
        for row in rolled
    ]  # fmt: skip
    inside = [
        Flagged(one.unit, one.flag, one.since, _meaning(one.name, one.certainty), "", one.why)
        for one in report.findings
        if one.unit in measured.units and measured.units[one.unit].path
    ]
    return HealthInfo(
        run=run,
        first=min(steps),
        last=max(steps),
        nodes=tuple(nodes),
        inside=tuple(sorted(inside, key=lambda one: one.meaning == "not observed")),
        modules=len(report.filters),
        steps=report.n_steps,
    )


def health_chart(info: HealthInfo) -> Chart:
    """Return the chart of a run's health."""
    panels = [("by node", info.nodes), ("inside the nodes", info.inside)]
    told = f"{counted(info.modules, 'module')} over {counted(info.steps, 'step')}"
    healthy = f"nothing is wrong with {told}"
    return Chart(
        title=f"Health of {info.run}",
        note=f"{told}; a bar begins at the first step that shows it" if info.nodes else "",
        panels=tuple(_panel(title, flagged, info) for title, flagged in panels if flagged),
        columns=1,
        empty=healthy if info.steps else "no step was measured",
    )


def _inside(node: NodeId, units: list[UnitId]) -> str:
    """Name the modules inside a node that a flag is about, the first of many."""
    names = [id.removeprefix(f"{node}/") for id in units if id != node]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"in {', '.join(names[:_NAMED])}{more}" if names else ""


def _node(measured: Measurements, unit: UnitId) -> str:
    return measured.units[unit].node


def _panel(title: str, flagged: tuple[Flagged, ...], info: HealthInfo) -> Panel:
    shown = flagged[:MOST]
    lanes = [*enumerate(shown)]
    by_meaning = sorted(lanes, key=lambda one: [*_LOOKS].index(one[1].meaning))
    groups = [
        Blocks(
            name=meaning,
            ink=_LOOKS[meaning][0],
            style=_LOOKS[meaning][1],
            blocks=tuple(_block(lane, one, info) for lane, one in group),
        )
        for meaning, group in groupby(by_meaning, key=lambda one: one[1].meaning)
    ]
    left = len(flagged) - len(shown)
    return Panel(
        title=title,
        x=Axis(title="step", kind="integer", ends=(info.first - 0.5, info.last + 0.5)),
        y=Axis(kind="category", categories=tuple(one.where for one in shown)),
        blocks=tuple(groups),
        note=f"The {len(shown)} worst of {len(flagged)} are drawn." if left else "",
    )


def _block(lane: int, one: Flagged, info: HealthInfo) -> Block:
    text = ASIDE.join(filter(None, (one.flag, one.detail)))
    sure = "" if one.meaning == "not observed" else f"{one.meaning}, "
    return Block(
        lane=lane,
        start=one.since - 0.5,
        end=info.last + 0.5,
        text=f"{text}{ASIDE}{sure}since {one.since}",
        tooltip=f"{one.where}: {text}\nsince step {one.since}, {one.meaning}\n{one.why}",
    )


def _meaning(flag: str, certainty: Meaning) -> Meaning:
    return "not observed" if flag in NEUTRAL else certainty

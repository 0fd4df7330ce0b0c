"""How the channels of a module change over a training: rank, likeness of groups, dead ones."""

from typing import NamedTuple

from soma.draw import Ink
from soma.errors import NotRecorded
from soma.health import AuditReport, Measurements, UnitId
from soma.viz._chart import Axis, Chart, Panel, Series
from soma.viz.figures._channels import dead_at
from soma.viz.figures._chosen import named

_INKS: tuple[Ink, ...] = ("series1", "series2", "series3", "series4", "series5", "series6")
_MOST = 12  # pairs of groups

Points = tuple[tuple[int, ...], tuple[float, ...]]  # steps and values


class ChannelEvolutionInfo(NamedTuple):
    """What was seen of a module's channels, over the steps that looked at them."""

    run: str
    unit: UnitId
    channels: int
    rank: Points
    likeness: tuple[tuple[str, Points], ...]  # of pairs of groups
    dead: Points
    leakage: float  # the line


def channel_evolution_info(
    run: str, measured: Measurements, report: AuditReport, unit: UnitId
) -> ChannelEvolutionInfo:
    """Return the history of a module's channels.

    Raises:
        NotRecorded: the module was not audited, or not its channels.
    """
    (id, *_) = named(measured, run, [unit])
    seen = measured.channels.get(id, [])
    if not seen:
        raise NotRecorded(
            f"the channels of `{id}` were not recorded in the run `{run}`; audit with `channels=`."
        )
    rank = measured.series.get(id, {}).get("effective_rank")
    lines = report.verdict.thresholds
    return ChannelEvolutionInfo(
        run=run,
        unit=id,
        channels=len(seen[-1].largest),
        rank=((), ()) if rank is None else (tuple(rank.steps), tuple(rank.values)),
        likeness=tuple(
            (f"{one} and {other}", (tuple(series.steps), tuple(series.values)))
            for (one, other), series in measured.similarity.get(id, {}).items()
        ),
        dead=(
            tuple(one.step for one in seen),
            tuple(float(len(dead_at(one, lines.dead))) for one in seen),
        ),
        leakage=lines.leakage,
    )


def channel_evolution_chart(info: ChannelEvolutionInfo) -> Chart:
    """Return the chart of a module's channels over a training."""
    panels = []
    if info.rank[0]:
        rank = _line("effective rank", info.rank, 0)
        panels.append(_panel("effective rank", [rank], (0.0, min(2.0, info.channels)),
                             f"directions that the {info.channels} channels use"))  # fmt: skip
    if info.likeness:
        panels.append(_likeness(info))
    dead = _line("dead channels", info.dead, 2)
    panels.append(
        _panel("dead channels", [dead], (0.0, 1.0), f"of {info.channels}, by step", whole=True)
    )
    return Chart(title=f"Channels of {info.unit} over the training", panels=tuple(panels))


def _likeness(info: ChannelEvolutionInfo) -> Panel:
    lines = [_line(name, points, at) for at, (name, points) in enumerate(info.likeness[:_MOST])]
    steps = [step for _, (steps, _) in info.likeness for step in steps]
    line = info.leakage
    ends = (float(min(steps)), float(max(steps)))
    leak = Series(name=f"LEAKAGE is above {line:g}", x=ends, y=(line, line), ink="bad", dashed=True)
    left = len(info.likeness) - len(lines)
    note = f"; {left} more pairs are not drawn" if left else ""
    return _panel(
        "likeness of groups", [*lines, leak], (0.0, 1.0), f"linear CKA, 1 is the same{note}"
    )


def _panel(
    title: str, lines: list[Series], ends: tuple[float, float], note: str, *, whole: bool = False
) -> Panel:
    return Panel(
        title=title,
        x=Axis(title="step", kind="integer"),
        y=Axis(kind="integer" if whole else "linear", ends=ends),
        series=tuple(lines),
        note=note,
    )


def _line(name: str, points: Points, at: int) -> Series:
    steps, values = points
    ink = _INKS[at % len(_INKS)]
    return Series(name=name, x=tuple(map(float, steps)), y=values, ink=ink, dashed=at % 2 == 1)

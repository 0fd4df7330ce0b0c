"""The channels of a module: how alike they are, which are dead and which are ignored."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from soma.draw import Ink
from soma.errors import NotRecorded
from soma.health import AuditReport, ChannelSnapshot, Measurements, UnitId
from soma.viz._chart import Axis, Cells, Chart, Panel, Series
from soma.viz.figures._chosen import named

DEAD, IGNORED = "†", "‡"
MOST = 64  # channels of a table


class ChannelsInfo(NamedTuple):
    """The channels of one module at the last step that looked at them."""

    run: str
    unit: UnitId
    step: int | None
    channels: int  # all channels of the module
    order: tuple[int, ...]  # those of the table, group by group
    correlation: tuple[tuple[float, ...], ...]
    groups: tuple[tuple[str, int], ...]  # name, and how many of `order` are in it
    dead: tuple[int, ...]
    ignored: tuple[int, ...]
    largest: tuple[float, ...]  # of each channel, over that of the largest
    gradient: tuple[float, ...]


def channels_info(
    run: str, measured: Measurements, report: AuditReport, unit: UnitId, most: int = MOST
) -> ChannelsInfo:
    """Return what was seen of a module's channels.

    Args:
        most: channels of the table; of more it has some, evenly spaced.

    Raises:
        NotRecorded: the module was not audited, or not its channels.
    """
    (id, *_) = named(measured, run, [unit])
    seen = measured.channels.get(id, [])
    rows, known = _table_of(measured, id)
    if not seen and not rows:
        raise NotRecorded(
            f"the channels of `{id}` were not recorded in the run `{run}`; audit with `channels=`."
        )
    groups = _grouped(known, measured.units[id].groups)
    drawn = {known[at * len(known) // most] for at in range(most)} if len(known) > most else known
    groups = [(name, [one for one in channels if one in drawn]) for name, channels in groups]
    order = [channel for _, channels in groups for channel in channels]
    places = [known.index(channel) for channel in order]
    last = seen[-1] if seen else None
    return ChannelsInfo(
        run=run,
        unit=id,
        step=None if last is None else last.step,
        channels=len(rows) if last is None else len(last.largest),
        order=tuple(order),
        correlation=tuple(tuple(_share(rows[one][other]) for other in places) for one in places),
        groups=tuple((name, len(channels)) for name, channels in groups),
        dead=_dead(seen, report, id),
        ignored=_flagged(report, id, ("IGNORED_CHANNELS",)),
        largest=() if last is None else _shares(last.largest),
        gradient=() if last is None else _shares(last.gradient),
    )


def channels_chart(info: ChannelsInfo) -> Chart:
    """Return the table of a module's channels, and a line for how large each is."""
    panels = [*_table(info), *_sizes(info)]
    said = [f"{len(info.dead)} dead, marked {DEAD}"] if info.dead else []
    if info.ignored:
        said.append(f"{len(info.ignored)} without a gradient, marked {IGNORED}")
    at = "" if info.step is None else f" at step {info.step}"
    counts = f"{info.channels} channels{at}: {'; '.join(said) or 'none dead, none ignored'}."
    if _is_constant(info):
        counts += " All of them are constant, so there is no correlation to draw."
    return Chart(title=f"Channels of {info.unit}", panels=tuple(panels), note=counts, columns=1)


def _is_constant(info: ChannelsInfo) -> bool:
    """Whether no channel varied, so that none has a correlation with another."""
    return bool(info.correlation) and all(
        math.isnan(one) for row in info.correlation for one in row
    )


def _table_of(measured: Measurements, id: UnitId) -> tuple[list[list[float]], list[int]]:
    """Return the correlation of channels, and which they are; nothing where it is not square."""
    rows = measured.correlation.get(id, [])
    known = measured.correlation_channels.get(id) or [*range(len(rows))]
    whole = len(rows) == len(set(known)) and all(len(row) == len(rows) for row in rows)
    return (rows, known) if whole else ([], [])


def _share(value: float) -> float:
    """Return a correlation; what cannot be one, as a file may hold, is none."""
    return value if -1.01 <= value <= 1.01 else math.nan


def _table(info: ChannelsInfo) -> list[Panel]:
    if not info.correlation or _is_constant(info):
        return []
    names, starts, at = [], [], 0
    for name, many in info.groups:
        starts.append(at)
        for index, channel in enumerate(info.order[at : at + many]):
            marks = DEAD * (channel in info.dead) + IGNORED * (channel in info.ignored)
            names.append(" ".join(filter(None, (name * (index == 0), f"{channel}{marks}"))))
        at += many
    shown = len(info.order)
    axis = Axis(kind="category", categories=tuple(names))
    across = Axis(kind="category", categories=tuple(map(str, info.order)), title="channel")
    return [
        Panel(
            title="correlation of the channels",
            x=across,
            y=axis,
            cells=Cells(
                rows=info.correlation, parts=tuple(starts[1:]), empty="constant: it has none"
            ),
            note=f"{shown} of {info.channels} channels are drawn." if shown < info.channels else "",
        )
    ]


def _sizes(info: ChannelsInfo) -> list[Panel]:
    lines = [
        _line("largest output", info.largest, "series1"),
        _line("gradient", info.gradient, "series2"),
    ]
    lines = [line for line in lines if line.y]
    if not lines:
        return []
    zero = any(value == 0 for line in lines for value in line.y)
    return [
        Panel(
            title="size of each channel over that of the largest, log scale",
            x=Axis(title="channel", kind="integer"),
            y=Axis(kind="log", ends=(0.1, 1.0)),
            series=tuple(lines),
            note="0 stands at the lower edge." if zero else "",
        )
    ]


def _line(name: str, values: tuple[float, ...], ink: Ink) -> Series:
    x = tuple(map(float, range(len(values))))
    return Series(name=name, x=x, y=values, ink=ink, dashed=ink != "series1")


def _grouped(known: list[int], groups: Mapping[str, Sequence[int]]) -> list[tuple[str, list[int]]]:
    """Return channels by group, each once, and what is in no group at the end."""
    left = dict.fromkeys(known)
    found = []
    for name, channels in groups.items():
        mine = [channel for channel in channels if channel in left]
        for channel in mine:
            left.pop(channel, None)
        if mine:
            found.append((name, mine))
    return [*found, ("others" if found else "", [*left])] if left else found


def dead_at(one: ChannelSnapshot, line: float) -> frozenset[int]:
    """Return the channels that never fired in one step, beside what went in or the others."""
    limit = line * (one.input_rms or max(one.largest, default=0.0))
    return frozenset(at for at, size in enumerate(one.largest) if size <= limit)


def _dead(seen: list[ChannelSnapshot], report: AuditReport, unit: UnitId) -> tuple[int, ...]:
    line = report.verdict.thresholds.dead
    recent = [dead_at(one, line) for one in seen[len(seen) // 2 :]]
    silent = frozenset.intersection(*recent) if recent else frozenset()
    return tuple(sorted(silent.union(_flagged(report, unit, ("DEAD", "DEAD_CHANNELS")))))


def _flagged(report: AuditReport, unit: UnitId, flags: tuple[str, ...]) -> tuple[int, ...]:
    found = [one for one in report.findings if one.unit == unit and one.name in flags]
    return tuple(sorted({channel for one in found for channel in one.channels}))


def _shares(values: Sequence[float]) -> tuple[float, ...]:
    numbers = tuple(values)
    largest = max(numbers, default=0.0)
    return tuple(value / largest if largest > 0 else 0.0 for value in numbers)

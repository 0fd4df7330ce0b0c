"""How the logged numbers went: a panel for each metric, training and validation together."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from soma.draw import Ink, counted
from soma.errors import NotRecorded, did_you_mean, listing
from soma.tracking import RunRecord
from soma.viz._chart import Axis, Chart, Panel, Series
from soma.viz._thinned import thinned
from soma.viz._usage import LOGGED

_DECADES = 3  # a positive metric that spans more is drawn on a log scale

_INKS: tuple[Ink, ...] = ("series1", "series2", "series3", "series4", "series5", "series6")
_SPLITS = {"train", "training", "val", "valid", "validation", "test", "eval"}
_JOINTS = re.compile(r"[_/.:\- ]+")


class Curve(NamedTuple):
    """The points of a metric that are drawn."""

    name: str
    steps: tuple[float, ...]
    values: tuple[float, ...]
    logged: int  # what was logged
    odd: int  # of them not finite
    first_odd: float | None  # the step of the first


class MetricGroup(NamedTuple):
    """Curves that are read against each other."""

    title: str
    curves: tuple[Curve, ...]
    log: bool


class MetricsInfo(NamedTuple):
    """The metrics of a run."""

    run: str
    groups: tuple[MetricGroup, ...]


def metrics_info(record: RunRecord, names: Sequence[str], log: bool | None) -> MetricsInfo:
    """Return the curves of the metrics named, or of all.

    Args:
        log: draw on a log scale; None: where a metric is positive and spans three decades.
    """
    known = record.metric_names()
    for name in names:
        if name not in known:
            what = f"it has {listing(known)}" if known else "it has none"
            raise NotRecorded(
                f"no metric `{name}` in the run `{record.name}`; {what}.{did_you_mean(name, known)}"
            )
    families: dict[str, list[str]] = {}
    for name in names or known:
        families.setdefault(_family(name), []).append(name)
    groups = []
    for family, members in families.items():
        curves = tuple(_curve(record, name) for name in members)
        title = members[0] if len(members) == 1 else family
        groups.append(
            MetricGroup(
                title,
                curves,
                logarithmic((value for curve in curves for value in curve.values), log),
            )
        )
    return MetricsInfo(record.name, tuple(groups))


def metrics_chart(info: MetricsInfo) -> Chart:
    """Return the chart of a run's metrics."""
    return Chart(
        title=f"Metrics of {info.run}",
        panels=tuple(map(_panel, info.groups)),
        empty="no metric was logged",
    )


def _panel(group: MetricGroup) -> Panel:
    alone = len(group.curves) == 1
    whole = all(step.is_integer() for curve in group.curves for step in curve.steps)
    return Panel(
        title=f"{group.title}, log scale" if group.log else group.title,
        x=Axis(title="step", kind="integer" if whole else "linear"),
        y=Axis(kind="log" if group.log else "linear"),
        series=tuple(
            Series(
                name=curve.name,
                x=curve.steps,
                y=curve.values,
                ink=_INKS[index % len(_INKS)],
                dashed=index % 2 == 1,
            )
            for index, curve in enumerate(group.curves)
        ),
        note=" ".join(filter(None, (_remark(curve, alone) for curve in group.curves))),
    )


def _remark(curve: Curve, alone: bool) -> str:
    name = "" if alone else f" of {curve.name}"
    parts = []
    if curve.odd:
        many = counted(curve.odd, "point")
        first = "at" if curve.odd == 1 else "first at"
        parts.append(f"{many}{name} not finite, {first} step {curve.first_odd:g}.")
    if len(curve.steps) < curve.logged:
        parts.append(f"{len(curve.steps):,} of {curve.logged:,} points{name} drawn.")
    return " ".join(parts)


def _family(name: str) -> str:
    """Return a metric's name without what tells training from validation, or nodes of a flow."""
    head, slash, _ = name.partition("/")
    if slash and head in LOGGED:
        return head
    joints = _JOINTS.findall(name)
    words = zip(_JOINTS.split(name), ["", *joints], strict=True)
    kept = [(joint, word) for word, joint in words if word.lower() not in _SPLITS]
    return "".join(f"{joint}{word}" for joint, word in kept).strip("_/.:- ") or name


def _curve(record: RunRecord, name: str) -> Curve:
    points = [(float(point["step"]), float(point["value"])) for point in record.metric_series(name)]
    points.sort(key=lambda point: point[0])
    values = [value for _, value in points]
    odd = [step for step, value in points if not math.isfinite(value)]
    drawn = thinned(values)
    return Curve(
        name=name,
        steps=tuple(points[index][0] for index in drawn),
        values=tuple(values[index] for index in drawn),
        logged=len(points),
        odd=len(odd),
        first_odd=odd[0] if odd else None,
    )


def logarithmic(values: Iterable[float], log: bool | None = None) -> bool:
    """Whether to use a log scale; never for what it cannot show.

    Args:
        log: what was asked for; None: where values are positive and span three decades.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite or min(finite) <= 0:
        return False
    if log is not None:
        return log
    return math.log10(max(finite)) - math.log10(min(finite)) > _DECADES

"""How the numbers of an audit went: a panel for each number, a line for each module."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from soma.draw import Ink
from soma.errors import NotRecorded, did_you_mean, listing
from soma.health import METRICS, AuditReport, Measurements, UnitId
from soma.viz._chart import Axis, Chart, Panel, Series
from soma.viz._thinned import thinned
from soma.viz.figures._chosen import by_call, faults_of, innermost, named

USUAL = ("out_grad_norm", "param_grad_norm", "update_ratio")
_UNASKED = 8  # lines of a panel where nobody named modules
_MOST = 16  # lines of a panel
_INKS: tuple[Ink, ...] = (
    "series1", "series2", "series3", "series4", "series5", "series6", "series7", "series8",
)  # fmt: skip


class Trace(NamedTuple):
    """One number of one module, over the steps where it was measured."""

    unit: UnitId
    steps: tuple[int, ...]
    values: tuple[float, ...]


class Measured(NamedTuple):
    """One number of all modules that are drawn."""

    metric: str
    traces: tuple[Trace, ...]
    log: bool


class AuditInfo(NamedTuple):
    """Numbers of a run's audit."""

    run: str
    panels: tuple[Measured, ...]
    drawn: int
    modules: int  # of which that many are drawn


def audit_info(
    run: str,
    measured: Measurements,
    report: AuditReport,
    metrics: Sequence[str],
    units: Sequence[str] | None,
) -> AuditInfo:
    """Return numbers over the steps.

    Args:
        metrics: names of `METRICS`; none: the gradients and the updates.
        units: ids of modules or patterns; None: those with findings, then some of the rest.

    Raises:
        NotRecorded: a number that no audit takes, or a module that was not audited.
    """
    for metric in metrics:
        if metric not in METRICS:
            raise NotRecorded(
                f"an audit measures no `{metric}`; it measures {listing(METRICS, most=40)}."
                f"{did_you_mean(metric, METRICS)}"
            )
    wanted = tuple(metrics) or USUAL
    some = [
        one.id
        for one in innermost(by_call(measured))
        if any(name in measured.series.get(one.id, {}) for name in wanted)
    ]
    if units is None:
        shown = _some(some, _worst(report))
    else:
        some = named(measured, run, units)
        shown = some[:_MOST]
    panels = [_measured(measured, name, shown) for name in wanted]
    drawn = tuple(one for one in panels if one.traces)
    return AuditInfo(run, drawn, len(shown), len(some))


def audit_chart(info: AuditInfo) -> Chart:
    """Return the chart of numbers of an audit."""
    note = ""
    if info.drawn < info.modules:
        note = f"{info.drawn} of {info.modules} modules are drawn; `units=` chooses others."
    inks = [trace.unit for panel in info.panels for trace in panel.traces]
    order = {unit: number for number, unit in enumerate(dict.fromkeys(inks))}
    return Chart(
        title=f"Audit of {info.run}",
        panels=tuple(_panel(one, order) for one in info.panels),
        note=note,
        empty="none of these numbers was measured",
    )


def _panel(one: Measured, order: dict[UnitId, int]) -> Panel:
    zeros = one.log and any(value == 0 for trace in one.traces for value in trace.values)
    return Panel(
        title=f"{one.metric}, log scale" if one.log else one.metric,
        x=Axis(title="step", kind="integer"),
        y=Axis(kind="log" if one.log else "linear"),
        series=tuple(
            Series(
                name=trace.unit,
                x=tuple(map(float, trace.steps)),
                y=trace.values,
                ink=_INKS[order[trace.unit] % len(_INKS)],
                dashed=order[trace.unit] % 2 == 1,
            )
            for trace in one.traces
        ),
        note=METRICS[one.metric] + ("; 0 stands at the lower edge" if zeros else ""),
    )


def _worst(report: AuditReport) -> list[UnitId]:
    """Return the modules with findings, those that no other one brings about first."""
    faults = sorted(faults_of(report), key=lambda one: one.cause is not None)
    return list(dict.fromkeys(one.unit for one in faults))


def _some(units: list[UnitId], flagged: list[UnitId]) -> list[UnitId]:
    """Return as many modules as can be told apart: the worst, and some from first to last."""
    if len(units) <= _UNASKED:
        return units
    kept = [id for id in flagged if id in units][: _UNASKED // 2]
    rest = [id for id in units if id not in kept]
    room = _UNASKED - len(kept)
    kept += [rest[index * (len(rest) - 1) // (room - 1)] for index in range(room)]
    return [id for id in units if id in kept]


def _measured(measured: Measurements, metric: str, units: Sequence[UnitId]) -> Measured:
    traces = []
    for unit in units:
        series = measured.series.get(unit, {}).get(metric)
        if series is not None and series.steps:
            kept = thinned(series.values)
            steps = tuple(series.steps[index] for index in kept)
            traces.append(Trace(unit, steps, tuple(series.values[index] for index in kept)))
    finite = [value for one in traces for value in one.values if math.isfinite(value)]
    return Measured(metric, tuple(traces), any(finite) and min(finite) >= 0)

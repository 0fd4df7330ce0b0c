"""The verdict of an audit: each finding as it is printed, a figure, and a row for each module."""

from typing import NamedTuple

from soma.draw import Badge, counted
from soma.health import AuditReport, FilterReport, Measurements
from soma.viz._chart import Chart
from soma.viz._graph_picture import flag_badge
from soma.viz.figures import faults_of, health_chart, health_info
from soma.viz.report._data import MOST_MODULES
from soma.viz.report._facts import Facts
from soma.viz.report._fill import figure, fill
from soma.viz.report._section import Section
from soma.viz.report.sections._diagnostics import finding

_MOST = 60  # findings that are told in full
_SHOWN = ("out_grad_norm", "param_grad_norm", "update_ratio", "act_std")


class Row(NamedTuple):
    """What the table says of one module."""

    id: str
    flags: tuple[Badge, ...]
    status: str
    numbers: tuple[str, ...]


def health_section(facts: Facts) -> Section | None:
    """Return the verdict; None where no audit ran."""
    if facts.verdict is None:
        return None
    stories, rows = facts.verdict.stories(), facts.verdict.filters
    left_out = []
    if len(stories) > _MOST:
        left_out.append(f"The {_MOST} worst of {len(stories):,} findings of health are told.")
    if len(rows) > MOST_MODULES:
        left_out.append(f"{MOST_MODULES} of {len(rows):,} audited modules are listed.")
    wrong = len(faults_of(facts.verdict))
    chart = health_charts(facts)["health"]
    return Section(
        key="health",
        title="Health",
        count=counted(wrong, "finding") if wrong else "",
        body=fill(
            "health.jinja",
            summary=_summary(facts.verdict),
            notes=_notes(facts.measured),
            stories=[finding(one) for one in stories[:_MOST]],
            figure=figure("health", chart) if chart.panels else "",
            names=_SHOWN,
            rows=[_row(one) for one in rows[:MOST_MODULES]],
        ),
        left_out=tuple(left_out),
    )


def health_charts(facts: Facts) -> dict[str, Chart]:
    """Return what Plotly draws of it."""
    if facts.verdict is None or facts.measured is None:
        return {}
    return {"health": health_chart(health_info(facts.manifest.name, facts.measured, facts.verdict))}


def _summary(verdict: AuditReport) -> str:
    return verdict.pretty().rpartition("\n")[2]


def _notes(measured: Measurements | None) -> list[str]:
    """Return what a reader has to know of how it was measured."""
    if measured is None:
        return []
    seldom = f"After the first steps, one in {measured.every} was measured whole."
    return [*([seldom] if measured.every > 1 else []), *measured.notes]


def _row(row: FilterReport) -> Row:
    numbers = (row.metrics.get(name) for name in _SHOWN)
    return Row(
        row.filter_id,
        tuple(map(flag_badge, row.flags)),
        row.status,
        tuple("" if one is None else f"{one:.3g}" for one in numbers),
    )

"""The curves of the metrics, a card each, and a table of their numbers."""

from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from soma.draw import counted
from soma.viz._chart import Chart
from soma.viz._figure import Figure
from soma.viz.figures import Curve, metrics_chart
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill, picture
from soma.viz.report._section import Section

_MOST = 60  # cards
_WIDTH = 380.0  # of a card: three fit a page, one a telephone


class Row(NamedTuple):
    """The numbers of one metric."""

    name: str
    last: str
    step: str
    least: str
    greatest: str
    points: str


def metrics_section(facts: Facts) -> Section | None:
    """Return curves and numbers; None where nothing was logged."""
    groups = facts.drawn.groups
    if not groups:
        return None
    curves = [curve for group in groups for curve in group.curves]
    panels = drawn_metrics(facts).panels
    cards = [
        Chart(title=panel.title, panels=(replace(panel, title=""),), note="") for panel in panels
    ]
    return Section(
        key="metrics",
        title="Metrics",
        count=counted(len(curves), "metric"),
        body=fill(
            "metrics.jinja",
            cards=[picture(Figure(card).to_svg(width=_WIDTH)) for card in cards],
            rows=[_row(curve) for curve in curves],
        ),
        left_out=_left_out(curves, len(panels), len(groups)),
    )


def drawn_metrics(facts: Facts) -> Chart:
    """Return the chart of the metrics that are drawn: all, or the first of very many."""
    return metrics_chart(facts.drawn._replace(groups=facts.drawn.groups[:_MOST]))


def metrics_charts(facts: Facts) -> dict[str, Chart]:
    """Return what Plotly draws of it."""
    return {"metrics": drawn_metrics(facts)}


def _left_out(curves: list[Curve], drawn: int, groups: int) -> tuple[str, ...]:
    found = []
    thinned = [curve for curve in curves if len(curve.steps) < curve.logged]
    if thinned:
        kept, logged = (
            sum(len(curve.steps) for curve in thinned),
            sum(curve.logged for curve in thinned),
        )
        found.append(
            f"Of the {logged:,} points of {counted(len(thinned), 'metric')}, {kept:,} are in this "
            "file: the least and the greatest of each stretch."
        )
    if drawn < groups:
        found.append(
            f"{drawn:,} of {groups:,} figures of metrics are drawn; table and data hold all."
        )
    return tuple(found)


def _row(curve: Curve) -> Row:
    finite = [value for value in curve.values if isfinite(value)]
    return Row(
        name=curve.name,
        last=f"{curve.values[-1]:.5g}",
        step=f"{curve.steps[-1]:,.0f}",
        least=f"{min(finite):.5g}" if finite else "",
        greatest=f"{max(finite):.5g}" if finite else "",
        points=f"{curve.logged:,}",
    )

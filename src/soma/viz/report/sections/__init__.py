"""The parts of a report, in the order of the page.

A new part is a file here with a function from `Facts` to a `Section`, or to None where there is
nothing to tell, a template, and a line in `SECTIONS`.
"""

from soma.viz.report.sections._diagnostics import diagnostics_section
from soma.viz.report.sections._graph import graph_section
from soma.viz.report.sections._inside import inside_section
from soma.viz.report.sections._metrics import drawn_metrics, metrics_section
from soma.viz.report.sections._surroundings import surroundings_section
from soma.viz.report.sections._timeline import timeline, timeline_section

__all__ = [
    "CHARTS",
    "SECTIONS",
    "diagnostics_section",
    "drawn_metrics",
    "graph_section",
    "inside_section",
    "metrics_section",
    "surroundings_section",
    "timeline",
    "timeline_section",
]

SECTIONS = (
    graph_section,
    inside_section,
    metrics_section,
    timeline_section,
    diagnostics_section,
    surroundings_section,
)
# What Plotly draws where it is asked to, by the key of the section.
CHARTS = {"metrics": drawn_metrics, "timeline": timeline}

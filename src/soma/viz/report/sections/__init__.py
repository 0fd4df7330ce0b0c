"""The parts of a report, in the order of the page.

A new part is a file here with a function from `Facts` to a `Section`, or to None where there is
nothing to tell, a template, and a line in `SECTIONS`.
"""

from soma.viz.report.sections._channels import channel_charts, channels_section
from soma.viz.report.sections._conversation import conversation_section
from soma.viz.report.sections._diagnostics import diagnostics_section
from soma.viz.report.sections._graph import graph_section
from soma.viz.report.sections._health import health_charts, health_section
from soma.viz.report.sections._inside import inside_section
from soma.viz.report.sections._metrics import metrics_charts, metrics_section
from soma.viz.report.sections._module_flow import module_flow_charts, module_flow_section
from soma.viz.report.sections._surroundings import surroundings_section
from soma.viz.report.sections._timeline import timeline_charts, timeline_section
from soma.viz.report.sections._usage import usage_section

__all__ = [
    "CHARTS",
    "SECTIONS",
    "channel_charts",
    "channels_section",
    "conversation_section",
    "diagnostics_section",
    "graph_section",
    "health_charts",
    "health_section",
    "inside_section",
    "metrics_charts",
    "metrics_section",
    "module_flow_charts",
    "module_flow_section",
    "surroundings_section",
    "timeline_charts",
    "timeline_section",
    "usage_section",
]

SECTIONS = (
    graph_section,
    conversation_section,
    usage_section,
    health_section,
    inside_section,
    module_flow_section,
    channels_section,
    metrics_section,
    timeline_section,
    diagnostics_section,
    surroundings_section,
)
# What Plotly draws where it is asked to, each by the key of its figure in the page.
CHARTS = (health_charts, module_flow_charts, channel_charts, metrics_charts, timeline_charts)

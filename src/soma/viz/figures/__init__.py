"""One file for each figure: `*_info` thinks, `*_chart` says what is drawn."""

from soma.viz.figures._audit import AuditInfo, Measured, Trace, audit_chart, audit_info
from soma.viz.figures._channel_evolution import (
    ChannelEvolutionInfo,
    channel_evolution_chart,
    channel_evolution_info,
)
from soma.viz.figures._channels import ChannelsInfo, channels_chart, channels_info
from soma.viz.figures._chosen import faults_of
from soma.viz.figures._gantt import GanttInfo, Turns, gantt_chart, gantt_info
from soma.viz.figures._health import Flagged, HealthInfo, health_chart, health_info
from soma.viz.figures._metrics import (
    Curve,
    MetricGroup,
    MetricsInfo,
    logarithmic,
    metrics_chart,
    metrics_info,
)
from soma.viz.figures._module_flow import (
    ModuleFlowInfo,
    Stair,
    module_flow_chart,
    module_flow_info,
)

__all__ = [
    "AuditInfo",
    "ChannelEvolutionInfo",
    "ChannelsInfo",
    "Curve",
    "Flagged",
    "GanttInfo",
    "HealthInfo",
    "Measured",
    "MetricGroup",
    "MetricsInfo",
    "ModuleFlowInfo",
    "Stair",
    "Trace",
    "Turns",
    "audit_chart",
    "audit_info",
    "channel_evolution_chart",
    "channel_evolution_info",
    "channels_chart",
    "channels_info",
    "faults_of",
    "gantt_chart",
    "gantt_info",
    "health_chart",
    "health_info",
    "logarithmic",
    "metrics_chart",
    "metrics_info",
    "module_flow_chart",
    "module_flow_info",
]

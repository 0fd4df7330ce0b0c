"""One file for each figure: `*_info` thinks, `*_chart` says what is drawn."""

from soma.viz.figures._gantt import GanttInfo, Turns, gantt_chart, gantt_info
from soma.viz.figures._metrics import Curve, MetricGroup, MetricsInfo, metrics_chart, metrics_info

__all__ = [
    "Curve",
    "GanttInfo",
    "MetricGroup",
    "MetricsInfo",
    "Turns",
    "gantt_chart",
    "gantt_info",
    "metrics_chart",
    "metrics_info",
]

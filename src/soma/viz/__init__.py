"""Pictures and figures about a run, from its directory alone: no torch, and Plotly if asked.

`_run_view.py` is what a user holds. `figures/` makes a `Chart` of what was recorded, and
`_figure.py` draws it; `_graph_picture.py` and `_flow_picture.py` draw graphs.
"""

from soma.viz._chart import Axis, Block, Blocks, Cells, Chart, Panel, Remark, Series
from soma.viz._conversation import ConversationEntry
from soma.viz._durations import duration
from soma.viz._figure import Figure
from soma.viz._flow_picture import flow_svg
from soma.viz._graph_picture import NodeNote, graph_svg
from soma.viz._graphviz import graphviz
from soma.viz._health_changes import HealthChange, health_changes
from soma.viz._mermaid import mermaid
from soma.viz._node_timings import NodeTiming
from soma.viz._run_view import RunView
from soma.viz._runs import RunList, RunRow, run_row, runs
from soma.viz._usage import NodeUsage
from soma.viz._verdict_data import verdict_data
from soma.viz._when import moment

__all__ = [
    "Axis",
    "Block",
    "Blocks",
    "Cells",
    "Chart",
    "ConversationEntry",
    "Figure",
    "HealthChange",
    "NodeNote",
    "NodeTiming",
    "NodeUsage",
    "Panel",
    "Remark",
    "RunList",
    "RunRow",
    "RunView",
    "Series",
    "duration",
    "flow_svg",
    "graph_svg",
    "graphviz",
    "health_changes",
    "mermaid",
    "moment",
    "run_row",
    "runs",
    "verdict_data",
]

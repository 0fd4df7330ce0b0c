"""The words everything else is said in: filters, expressions, topology, events, diagnostics.

Start with `_filter.py`; then `_expression.py` (`>>` and `|`) and `_topology.py`. The
compiler, one floor up, judges a topology.
"""

from soma.core._diagnostic import Diagnostic, Label, Level
from soma.core._event import (
    EpochFinished,
    Event,
    Listener,
    Listeners,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    Phase,
    StepFinished,
    Tap,
    TrainingFinished,
    TrainingStarted,
    Watcher,
)
from soma.core._expression import (
    Chain,
    Composable,
    Expression,
    Fork,
    Placed,
    as_composable,
    checked_target,
)
from soma.core._filter import (
    Arguments,
    Filter,
    FilterKind,
    FilterMeta,
    StreamMode,
    has_module,
    needs_fit,
)
from soma.core._inputs import Inputs, is_read_once, per_root
from soma.core._message import Message, Reply, Role, Stop, ToolCall, ToolSpec, Usage
from soma.core._module_flow import FlowEdge, FlowKind, FlowNode, ModuleFlow
from soma.core._remade import parameters_of, remade
from soma.core._search import Searchable, SearchSpace, apply_params, search_space
from soma.core._space import Choice, Range, Space, searched_values
from soma.core._space_declared import search
from soma.core._topology import Inlined, Link, Node, NodeId, Topology, Wiring, snake_case

__all__ = [
    "Arguments",
    "Chain",
    "Choice",
    "Composable",
    "Diagnostic",
    "EpochFinished",
    "Event",
    "Expression",
    "Filter",
    "FilterKind",
    "FilterMeta",
    "FlowEdge",
    "FlowKind",
    "FlowNode",
    "Fork",
    "Inlined",
    "Inputs",
    "Label",
    "Level",
    "Link",
    "Listener",
    "Listeners",
    "Message",
    "ModuleFlow",
    "Node",
    "NodeFailed",
    "NodeFinished",
    "NodeId",
    "NodeStarted",
    "Phase",
    "Placed",
    "Range",
    "Reply",
    "Role",
    "SearchSpace",
    "Searchable",
    "Space",
    "StepFinished",
    "Stop",
    "StreamMode",
    "Tap",
    "ToolCall",
    "ToolSpec",
    "Topology",
    "TrainingFinished",
    "TrainingStarted",
    "Usage",
    "Watcher",
    "Wiring",
    "apply_params",
    "as_composable",
    "checked_target",
    "has_module",
    "is_read_once",
    "needs_fit",
    "parameters_of",
    "per_root",
    "remade",
    "search",
    "search_space",
    "searched_values",
    "snake_case",
]

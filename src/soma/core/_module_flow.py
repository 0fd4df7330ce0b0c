"""What was executed inside one node's module: calls, operations, and what flowed between them.

Plain data, so it is drawn without torch. `soma.audit` traces it, a run directory keeps it.
"""

from dataclasses import dataclass
from typing import Literal

FlowKind = Literal["input", "module", "operation", "output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowNode:
    """One call of a submodule, one functional operation, or an end of the whole."""

    id: str  # unique in its flow: `trunk.0`, its second call `trunk.0#2`, an operation `cat_1`
    kind: FlowKind
    label: str  # `Linear`, `cat`
    path: str  # where it stands in the module: `trunk.0`; of an operation, the module around it
    parameters: int  # elements of its own parameters, those of its submodules included
    trainable: int  # of them, those that ask for a gradient
    shape: tuple[int, ...] | None  # of its (first) output, the batch axis included
    detail: str  # for a reader: `in_features=16, out_features=16`; may be empty
    share: float  # of the traced calls, those in which it ran


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEdge:
    """A value that flowed from one node to another."""

    source: str
    target: str
    cut: str | None  # what stops the gradient on it: `detach`, `numpy`, `item`, `no_grad`
    share: float  # of the traced calls, those in which it flowed


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFlow:
    """The inside of one node, over the calls that were traced."""

    node: str
    class_name: str
    parameters: int
    trainable: int
    calls: int  # traced
    nodes: tuple[FlowNode, ...]  # in the order of their first call
    edges: tuple[FlowEdge, ...]
    note: str | None  # why it is not whole, as for a compiled module

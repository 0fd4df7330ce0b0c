"""The half of a flow that is declared: its nodes and links, what can be asked of them, pictures.

`_flow.py` goes on with the half that runs.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from typing import NoReturn, Self

from soma.compiler import ExecutionPlan, graph_text
from soma.core import (
    Composable,
    Filter,
    Inlined,
    Link,
    Node,
    NodeId,
    Topology,
    as_composable,
)
from soma.errors import InvalidInput, InvalidNodeId, NotAFilter
from soma.flow._budget import Budget, as_budget
from soma.flow._checks import compiled
from soma.flow._computation import Computation, is_graph
from soma.flow._flat import flat, flow_record
from soma.flow._model import Model
from soma.flow._nested import Nested
from soma.flow._node import FlowNode, part_prefix
from soma.tracking import Drawn, GraphRecord


class DeclaredFlow(Composable, Drawn):
    """Nodes connected into one flow; `Flow` says what the arguments are."""

    def __init__(
        self, *, name: str = "flow", model: Model | None = None, budget: Budget | None = None
    ) -> None:
        if model is not None and not isinstance(model, Model):
            name = repr(model) if isinstance(model, str) else "..."
            raise InvalidInput(
                f"the model of a flow is {model!r:.80}; an object that can be asked is wanted, "
                f"such as `OpenAIModel({name:.80})`."
            )
        self.name = name
        self.model = model
        self.budget = as_budget(budget)
        self.topology = Topology(_adopted, _enclosed)

    @classmethod
    def of(cls, expression: object, name: str) -> "DeclaredFlow":
        """Return the flow of an expression; one that is a flow already as it is."""
        if isinstance(expression, DeclaredFlow):
            return expression
        flow = cls(name=name)
        flow.topology.add_expression(as_composable(expression, "in a flow"))
        return flow

    # Declaring

    def node(self, id_or_node: object, node: object = None, /) -> NodeId:
        """Declare a node, `flow.node("id", node)` or `flow.node(node)`, and return its id.

        A graph or a flow becomes one node.
        """
        id, part = (id_or_node, node) if isinstance(id_or_node, str) else (None, id_or_node)
        if id is None and node is not None:
            raise InvalidNodeId(
                f"`node` got {id_or_node!r:.80} first; the id comes first, then the node: "
                '`flow.node("judge", LLM(...))`.'
            )
        return self.topology.declare(as_composable(part, "in `node`"), id)[0]

    def connect(self, source: NodeId, target: NodeId) -> Self:
        """Declare that `target` reads `source`; a fan-in reads them in this order."""
        self.topology.connect(source, target)
        return self

    edge = connect

    # Asking

    def nodes(self) -> dict[NodeId, FlowNode]:
        """Return the nodes by id, without those inside of them."""
        return {
            node.id: node.filter
            for node in self.topology.nodes.values()
            if isinstance(node.filter, FlowNode)
        }

    def filters(self) -> list[tuple[NodeId, Filter]]:
        """Return `(id, filter)` of all nodes, with those of cases, loops, flows and graphs."""
        return [*_filters(self, "")]

    def filter(self, id: NodeId) -> Filter:
        """Return one node, also of those inside of others as `judge.again.fix`."""
        inner = dict(self.filters())
        return inner[id] if id in inner else self.topology.node(id).filter

    def edges(self) -> list[Link]:
        """Return `(source, target)` pairs as declared."""
        return list(self.topology.links)

    def compile(self, mode: str = "inference") -> ExecutionPlan:
        """Judge the flow without running it: its plan, with diagnostics.

        Args:
            mode: `"inference"`, or `"differentiable"`, which says where gradients end.

        Raises:
            CompileError: with all that is wrong.
        """
        return compiled(self, mode)

    def unfitted(self, filters: Mapping[NodeId, Filter] | None = None) -> Self:
        """Return the same flow with copies of its nodes, whose graphs have learned nothing.

        Args:
            filters: what stands in some nodes instead.
        """
        made = copy(self)
        made.topology = Topology(_adopted, _enclosed)
        others = filters or {}
        nodes = {
            id: _copied(others.get(id) or node.filter, id, others)
            for id, node in self.topology.nodes.items()
        }
        made.topology.take(self.topology, nodes)
        return made

    # Showing

    def to_text(self) -> str:
        """Return the flow as a tree of text, as `print` shows it."""
        return graph_text(flat(self), self._title())

    def __str__(self) -> str:
        """Draw the flow as a tree of text."""
        return self.to_text()

    def __repr__(self) -> str:
        """Name the flow and count its nodes."""
        return f"<{self._title()}>"

    def inlined(self) -> Inlined:
        """Refuse to become a part of a graph.

        Raises:
            NotAFilter: always.
        """
        raise NotAFilter(
            f"the flow `{self.name}` stands in a graph; a flow may hold graphs, and not the "
            "reverse. Make a flow of the whole expression: `soma.Flow.somatize(...)`."
        )

    # Within

    def _record(self) -> GraphRecord:
        return flow_record(self)

    def _title(self) -> str:
        count = len(flat(self).nodes)
        return f"Flow `{self.name}`: {count} node{'' if count == 1 else 's'}"


def _filters(flow: DeclaredFlow, prefix: str) -> Iterator[tuple[NodeId, Filter]]:
    for node in _ordered(flow):
        id = f"{prefix}{node.id}"
        yield id, node.filter
        if isinstance(node.filter, Computation):
            yield from ((f"{id}.{one}", filter) for one, filter in node.filter.graph.filters())
        elif isinstance(node.filter, FlowNode):
            for name, part in node.filter.parts().items():
                yield from _filters(part, part_prefix(id, name))


def _ordered(flow: DeclaredFlow) -> list[Node]:
    nodes = flow.topology.nodes
    return [nodes[id] for id in dict.fromkeys([*flow.topology.wiring().order, *nodes])]


def _copied(filter: Filter, id: NodeId, others: Mapping[NodeId, Filter]) -> Filter:
    """Return a copy of a node, with copies of what is inside."""
    node = copy(filter)
    if isinstance(node, Computation):
        node.graph = node.graph.unfitted(_below(others, f"{id}."))
    elif isinstance(node, FlowNode) and node.parts():
        node.with_parts(
            {
                name: part.unfitted(_below(others, part_prefix(id, name)))
                for name, part in node.parts().items()
            }
        )
    return node


def _below(others: Mapping[NodeId, Filter], prefix: str) -> dict[NodeId, Filter]:
    return {id.removeprefix(prefix): one for id, one in others.items() if id.startswith(prefix)}


def _enclosed(part: Composable) -> Filter:
    """Return the one node that a graph or a flow is in a flow."""
    if isinstance(part, DeclaredFlow):
        return Nested(part)
    if is_graph(part):
        return Computation(part)  # type: ignore[arg-type]
    return _adopted(part)


def _adopted(value: object) -> NoReturn:
    shown = " ".join(repr(value).split())[:80]
    raise NotAFilter(
        f"{shown} stands in a flow; a node of a flow, a graph or another flow is wanted. What "
        "computes belongs in a graph: `soma.Graph.somatize(...)`."
    )

"""The half of a graph that is declared: its nodes and edges, what can be asked of them, pictures.

`_graph.py` goes on with the half that runs.
"""

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Self

from soma._extras import require
from soma.cache import DEFAULT, Cache, open_store
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
    has_module,
    remade,
)
from soma.engine import Runner
from soma.errors import InvalidNodeId
from soma.tracking import Drawn, GraphRecord, graph_record


class DeclaredGraph(Composable, Drawn):
    """Filters connected into one pipeline; `Graph` says what the arguments are."""

    def __init__(
        self,
        *,
        name: str = "graph",
        seed: int | None = None,
        executor: "Executor | str | None" = None,
        cache: object = DEFAULT,
    ) -> None:
        self.name = name
        self.topology = Topology(_adopted)
        store = open_store(cache)
        self._runner = Runner(
            self.topology,
            seed=seed,
            executor=executor,
            cache=None if store is None else Cache(store),
        )
        self._runner.elsewhere = _elsewhere

    # Declaring

    @classmethod
    def somatize(
        cls,
        expression: object,
        *,
        name: str = "graph",
        seed: int | None = None,
        executor: "Executor | str | None" = None,
        cache: object = DEFAULT,
    ) -> Self:
        """Make a graph of an expression of filters, `>>` and `|`.

        Raises:
            CompileError: with all that is wrong in the expression.
        """
        graph = cls(name=name, seed=seed, executor=executor, cache=cache)
        states = graph.topology.add_expression(as_composable(expression, "in `somatize`"))
        graph._runner.states.update(states)
        graph.compile()
        return graph

    def node(
        self, id_or_filter: object, filter: object = None, /, *, target: str | None = None
    ) -> NodeId:
        """Declare a node, `g.node("id", filter)` or `g.node(filter)`, and return its id.

        A graph in place of the filter is inlined, its nodes as `id.inner`; an estimator of
        scikit-learn becomes the filter that `soma.sk` makes. `target` is the name of the worker
        that the filter runs on, as in `filter.at("worker1")`.
        """
        id, part = (id_or_filter, filter) if isinstance(id_or_filter, str) else (None, id_or_filter)
        if id is None and filter is not None:
            raise InvalidNodeId(
                f"`node` got {id_or_filter!r} first; the id comes first, then the filter: "
                '`g.node("encoder", Encoder())`.'
            )
        name, states = self.topology.declare(as_composable(part, "in `node`"), id, target)
        self._runner.states.update(states)
        return name

    def connect(self, source: NodeId, target: NodeId) -> Self:
        """Declare that `target` reads `source`; a fan-in reads them in this order."""
        self.topology.connect(source, target)
        return self

    edge = connect

    # Asking

    def filters(self) -> list[tuple[NodeId, Filter]]:
        """Return `(id, filter)` pairs in topological order."""
        return [(node.id, node.filter) for node in self.topology]

    def filter(self, id: NodeId) -> Filter:
        """Return one node's filter."""
        return self.topology.node(id).filter

    def filter_ids(self) -> list[NodeId]:
        """Return the node ids in topological order."""
        return list(self.topology.wiring().order)

    def edges(self) -> list[Link]:
        """Return `(source, target)` pairs as declared."""
        return list(self.topology.links)

    def roots(self) -> list[NodeId]:
        """Return the nodes that read the graph's own input."""
        return list(self.topology.wiring().roots)

    def leaves(self) -> list[NodeId]:
        """Return the nodes whose output is the graph's own."""
        return list(self.topology.wiring().leaves)

    @property
    def training(self) -> bool:
        """Whether the graph is in training; it starts in eval."""
        return False

    def compile(self, mode: str = "inference") -> ExecutionPlan:
        """Judge the graph without running it: its plan, with diagnostics.

        Args:
            mode: `"inference"`, `"differentiable"` or `"no_cache"`.

        Raises:
            CompileError: with all that is wrong.
        """
        return self._runner.plan(mode)

    def unfitted(self, filters: Mapping[NodeId, Filter] | None = None) -> Self:
        """Return the same graph with nothing learned, its filters made once more.

        Args:
            filters: what stands in some nodes instead.
        """
        memory = self._runner.memory
        graph = type(self)(
            name=self.name,
            seed=self._runner.seed,
            executor=self._runner.executors.asked,
            cache=None if memory is None else memory.cache.store,
        )
        others = filters or {}
        made = {
            id: others.get(id) or remade(node.filter) for id, node in self.topology.nodes.items()
        }
        graph.topology.take(self.topology, made)
        return graph

    __sklearn_clone__ = unfitted  # what `sklearn.base.clone` calls

    # Showing

    def to_text(self) -> str:
        """Return the graph as a tree of text, as `print` shows it."""
        return graph_text(self.topology, self._title())

    def __str__(self) -> str:
        """Draw the graph as a tree of text."""
        return self.to_text()

    def __repr__(self) -> str:
        """Name the graph and count its nodes."""
        return f"<{self._title()}>"

    def inlined(self) -> Inlined:
        """Return the nodes for another graph to take in."""
        return Inlined(self.name, self.topology, self._runner.states)

    # Within

    def _record(self) -> GraphRecord:
        return graph_record(self.topology, self.name)

    def _title(self) -> str:
        count = len(self.topology.nodes)
        mode = "training" if self.training else "eval"
        return f"Graph `{self.name}`: {count} node{'' if count == 1 else 's'}, in {mode}"

    def _has_modules(self) -> bool:
        return any(has_module(node.filter) for node in self.topology.nodes.values())


def _adopted(estimator: object) -> Filter:
    """Return the filter of an estimator that stands in an expression as it is."""
    filter: Filter = require("soma.integrations", extra="sklearn").sk(estimator)
    return filter


def _elsewhere(runner: Runner, node: Node) -> Filter:
    """Return what stands here for a plain filter that is placed on a worker."""
    filter: Filter = require("soma.distributed", extra="torch").stand_in(runner, node)
    return filter

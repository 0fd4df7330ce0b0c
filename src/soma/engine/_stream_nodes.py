"""Nodes that do not go chunk by chunk as they are: those that evolve, and those that wait."""

from copy import deepcopy
from typing import Protocol, cast

from soma.core import Filter, NodeId, StreamMode, Topology, has_module
from soma.engine._runner import Runner
from soma.errors import InvalidInput


class _Updating(Protocol):
    def update(self, state: object, chunk: object) -> object:
        """Return the state after one more chunk."""


class Evolving:
    """A filter whose state moves on with each chunk, first to last.

    A turn that is repeated starts from the same state: it moves on only by `move`.
    """

    __slots__ = ("_next", "filter", "state")

    def __init__(self, filter: Filter, state: object) -> None:
        self.filter = filter
        self.state = self._next = state

    def __call__(self, x: object) -> object:
        self._next = cast(_Updating, self.filter).update(self.state, x)
        return self.filter.forward(x, self._next)

    def move(self) -> None:
        """Keep the state of the last turn."""
        self.state = self._next


def evolving_nodes(runner: Runner) -> dict[NodeId, Evolving]:
    """Return the nodes that evolve, each with its own copy of what it has learned.

    Raises:
        InvalidInput: one of them is a module, whose weights are its state.
    """
    found = {}
    for node in runner.topology:
        if node.filter.meta().stream_mode is not StreamMode.Evolving:
            continue
        if has_module(node.filter):
            raise InvalidInput(
                f'{runner.name(node.id)} holds a module and says `_stream_mode = "evolving"`; the '
                "weights of a module do not move on in a stream. Leave that line out, or put what "
                "evolves into a plain filter of its own."
            )
        found[node.id] = Evolving(node.filter, deepcopy(runner.states.get(node.id)))
    return found


def late_nodes(topology: Topology) -> frozenset[NodeId]:
    """Return the nodes that wait for all chunks: barriers, and all that is behind one."""
    late: set[NodeId] = set()
    wiring = topology.wiring()
    for node in wiring.order:
        mode = topology.nodes[node].filter.meta().stream_mode
        if mode is StreamMode.Barrier or not late.isdisjoint(wiring.predecessors[node]):
            late.add(node)
    return frozenset(late)

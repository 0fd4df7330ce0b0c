"""Which nodes of a graph one torch module can be made of: those that gradients pass."""

from dataclasses import dataclass

from soma.core import Node, NodeId, Topology, has_module
from soma.errors import CompileError, listing
from soma.training._prefix import prefix_nodes


@dataclass(frozen=True, slots=True)
class Stretch:
    """The nodes in order, what they read from outside, and where their output comes out."""

    nodes: tuple[Node, ...]
    reads: tuple[NodeId, ...]  # roots among the nodes, and the opaque nodes right before them
    leaves: tuple[NodeId, ...]
    shares_input: bool  # all that is read is the graph's own input


def stretch_of(topology: Topology) -> Stretch:
    """Return the differentiable stretch: all that comes after the prefix and before the tail.

    Raises:
        CompileError: there is none, or something between its nodes passes no gradient.
    """
    wiring = topology.wiring()
    prefix = prefix_nodes(topology)
    nodes = tuple(
        node for node in topology if node.id not in prefix and node.filter.meta().differentiable
    )
    if not any(has_module(node.filter) for node in nodes):
        raise CompileError(
            "no node of this graph has a torch module, so there is none to give. A "
            "`soma.DifferentiableFilter` has one."
        )
    inside = {node.id for node in nodes}
    _refuse_between(topology, prefix | inside, inside)
    roots = [node.id for node in nodes if not wiring.predecessors[node.id]]
    before = {
        source for node in nodes for source in wiring.predecessors[node.id] if source not in inside
    }
    return Stretch(
        nodes,
        tuple(one for one in wiring.order if one in before or one in roots),
        tuple(one.id for one in nodes if not inside.intersection(wiring.successors[one.id])),
        not before,
    )


def _refuse_between(topology: Topology, known: set[NodeId], inside: set[NodeId]) -> None:
    """Refuse a graph in which the stretch reads a node that is neither in it nor before it."""
    wiring = topology.wiring()
    needed: set[NodeId] = set()
    for node in reversed(wiring.order):
        if node in inside or node in needed:
            needed.update(wiring.predecessors[node])
    between = [node for node in wiring.order if node in needed and node not in known]
    if between:
        one = len(between) == 1
        raise CompileError(
            f"{listing(between)} {'stands' if one else 'stand'} inside the differentiable part of "
            f"the graph and {'passes' if one else 'pass'} no gradient, so it is no single module. "
            "A filter of torch operations says `_differentiable = True`; else make one graph of "
            "what comes before and one of what comes after, and take the module of each."
        )

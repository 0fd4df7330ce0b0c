"""A flow with all that is inside of its nodes, as one topology: what pictures and runs show."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from soma.core import NodeId, Topology
from soma.flow._node import FlowNode, part_prefix
from soma.tracking import GraphRecord, graph_record

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow


def flat(flow: "DeclaredFlow") -> Topology:
    """Return nodes and links of a flow and of its parts, with ids such as `judge.again.fix`.

    A node leads to the first nodes of its parts. What reads a condition or a loop reads the last
    nodes of the ways it may go.
    """
    topology = Topology()
    _add(topology, flow, "")
    return topology


def flow_record(flow: "DeclaredFlow", hidden: Callable[[str], str] = str) -> GraphRecord:
    """Return what a run's directory keeps of a flow; nodes say as their kind what they are.

    Args:
        hidden: takes secrets out of a text.
    """
    topology = flat(flow)
    record = graph_record(topology, flow.name, hidden)
    kinds = {
        id: node.filter.kind
        for id, node in topology.nodes.items()
        if isinstance(node.filter, FlowNode)
    }
    return replace(
        record,
        nodes=tuple(replace(node, kind=kinds.get(node.id, node.kind)) for node in record.nodes),
    )


def _add(
    topology: Topology, flow: "DeclaredFlow", prefix: str
) -> tuple[list[NodeId], list[NodeId]]:
    """Declare a flow's nodes; return those that it begins and ends with."""
    exits: dict[NodeId, list[NodeId]] = {}
    for node in flow.topology.nodes.values():
        id = f"{prefix}{node.id}"
        topology.add(node.filter, id)
        exits[node.id] = [id]
        if not isinstance(node.filter, FlowNode):
            continue
        ends = []
        for name, part in node.filter.parts().items():
            first, last = _add(topology, part, part_prefix(id, name))
            for one in first:
                topology.connect(id, one)
            ends += last
        if node.filter.hands_over:
            exits[node.id] = [*ends, *([] if _always_goes_in(node.filter) else [id])]
    wiring = flow.topology.wiring()
    for source, target in dict.fromkeys(flow.topology.links):
        if source in exits and target in exits:
            for one in exits[source]:
                topology.connect(one, f"{prefix}{target}")
    leaves = [one for leaf in wiring.leaves for one in exits[leaf]]
    return [f"{prefix}{root}" for root in wiring.roots], leaves


def _always_goes_in(node: FlowNode) -> bool:
    """Whether what comes out of a node always comes out of a part of it."""
    cases = getattr(node, "cases", None)
    return bool(node.parts()) and (cases is None or None not in cases.values())

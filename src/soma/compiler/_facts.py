"""What every check reads, gathered once: a check is a function of these facts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from soma.compiler._labels import node_labels
from soma.core import Diagnostic, FilterMeta, NodeId, Topology, Wiring


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A topology, resolved, with what its filters say of themselves."""

    topology: Topology
    wiring: Wiring
    metas: Mapping[NodeId, FilterMeta]
    undeclared: Mapping[NodeId, str]  # nodes without `metas`, and what is wrong with them
    labels: Mapping[NodeId, str]
    positions: Mapping[NodeId, int]  # from 1, in topological order

    @classmethod
    def of(cls, topology: Topology) -> "Facts":
        """Gather the facts; a filter is asked for its `meta` this one time."""
        metas, undeclared = {}, {}
        for node in topology.nodes.values():
            try:
                metas[node.id] = node.filter.meta()
            except ValueError as problem:  # a word that is no `FilterKind` or `StreamMode`
                undeclared[node.id] = str(problem)
        wiring = topology.wiring()
        return cls(
            topology=topology,
            wiring=wiring,
            metas=metas,
            undeclared=undeclared,
            labels=node_labels(topology),
            positions={node: index for index, node in enumerate(wiring.order, start=1)},
        )


Check = Callable[[Facts], list[Diagnostic]]

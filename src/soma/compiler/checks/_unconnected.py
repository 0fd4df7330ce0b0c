"""A node that was declared is usually meant to be linked."""

from soma.compiler._facts import Facts
from soma.core import Diagnostic, Label


def unconnected(facts: Facts) -> list[Diagnostic]:
    """A note for each node without any link, in a graph of several nodes."""
    wiring = facts.wiring
    if len(facts.topology.nodes) == 1:
        return []
    return [
        Diagnostic(
            level="note",
            code="unconnected",
            node=node,
            message=f"`{facts.labels[node]}` has no links; it is a root and a leaf by itself",
            position=position,
            labels=(Label(node=node, role="fault"),),
            help="Link it with `g.connect`, or take it out, unless it is meant to stand alone.",
        )
        for node, position in facts.positions.items()
        if not wiring.predecessors[node] and not wiring.successors[node]
    ]

"""A graph has to hold something."""

from soma.compiler._facts import Facts
from soma.core import Diagnostic


def empty(facts: Facts) -> list[Diagnostic]:
    """An error for a graph without nodes."""
    if facts.topology.nodes:
        return []
    return [
        Diagnostic(
            level="error",
            code="empty",
            node=None,
            message="The graph has no nodes; at least one filter is wanted",
            help="Declare one with `g.node(filter)`, or build the graph from an expression: "
            "`Graph.somatize(A() >> B())`.",
        )
    ]

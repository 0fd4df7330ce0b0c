"""A graph computes; what orchestrates language models stands in a flow."""

from soma.compiler._facts import Facts
from soma.core import Diagnostic, Label


def orchestration(facts: Facts) -> list[Diagnostic]:
    """An error for each node that belongs in a flow."""
    return [
        Diagnostic(
            level="error",
            code="orchestration",
            node=node.id,
            message=f"`{facts.labels[node.id]}` orchestrates, and a graph only computes",
            labels=(Label(node=node.id, role="fault"),),
            help="Make a flow of the expression, `soma.Flow.somatize(...)`; a graph may be one of "
            "its nodes.",
        )
        for node in facts.topology.nodes.values()
        if node.filter._orchestrates
    ]

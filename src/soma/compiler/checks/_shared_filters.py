"""A filter belongs to one node: its state does."""

from soma.compiler._facts import Facts
from soma.core import Diagnostic, Label, NodeId
from soma.errors import listing


def shared_filters(facts: Facts) -> list[Diagnostic]:
    """An error for each filter object that stands in several nodes."""
    homes: dict[int, list[NodeId]] = {}
    for node in facts.topology.nodes.values():
        homes.setdefault(id(node.filter), []).append(node.id)
    return [_error(facts, nodes) for nodes in homes.values() if len(nodes) > 1]


def _error(facts: Facts, nodes: list[NodeId]) -> Diagnostic:
    name = type(facts.topology.nodes[nodes[0]].filter).__name__
    return Diagnostic(
        level="error",
        code="shared-filter",
        node=nodes[1],
        message=f"Nodes {listing(nodes)} hold one `{name}` object; each wants its own",
        labels=tuple(Label(node=node, role="fault") for node in nodes),
        help=f"Construct another `{name}(...)` for each further node, or let the readers of both "
        "read one node.",
    )

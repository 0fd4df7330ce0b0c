"""A link joins two nodes that are there."""

from soma.compiler._facts import Facts
from soma.core import Diagnostic, Label, Link, NodeId
from soma.errors import did_you_mean, listing

_MOST_GUESSES = 8  # one guess looks at every name of the graph


def unknown_nodes(facts: Facts) -> list[Diagnostic]:
    """An error for each name in the links that no node has."""
    nodes = facts.topology.nodes
    uses: dict[NodeId, list[Link]] = {}
    for link in facts.topology.links:
        for end in dict.fromkeys(link):
            if end not in nodes:
                uses.setdefault(end, []).append(link)
    return [
        _error(facts, name, links, guess=index < _MOST_GUESSES)
        for index, (name, links) in enumerate(uses.items())
    ]


def _error(facts: Facts, name: NodeId, links: list[Link], *, guess: bool) -> Diagnostic:
    nodes = facts.topology.nodes
    source, target = links[0]
    others = f"; so do {len(links) - 1} more" if len(links) > 1 else ""
    near = did_you_mean(name, nodes) if guess else ""
    known = [end for end in links[0] if end in nodes]
    there_is = f"the nodes here are {listing(nodes)}" if nodes else "there is no node here yet"
    return Diagnostic(
        level="error",
        code="unknown-node",
        node=known[0] if known else None,
        message=f"The link `{source}` → `{target}` names `{name}`, which is no node of this graph"
        f"{others}",
        remarks=(near.strip(),) if near else (),
        labels=tuple(Label(node=end, role="fault") for end in known),
        help=f"Declare that node, or correct the link; {there_is}.",
    )

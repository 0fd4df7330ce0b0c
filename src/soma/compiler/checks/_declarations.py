"""A filter says what it is in words that soma knows, and keeps its word."""

from soma.compiler._facts import Facts
from soma.core import Diagnostic, FilterKind, Label, NodeId, StreamMode
from soma.errors import listing


def declarations(facts: Facts) -> list[Diagnostic]:
    """An error for each filter that declares an unknown kind or stream mode."""
    help = (
        f"`_kind` is one of {listing(FilterKind)}; `_stream_mode` is one of {listing(StreamMode)}."
    )
    return [
        _error(facts, node, "declaration", f"does not say what it is: {problem}", help)
        for node, problem in facts.undeclared.items()
    ]


def updates(facts: Facts) -> list[Diagnostic]:
    """An error for each filter that claims an evolving state and cannot move it on."""
    return [
        _error(
            facts,
            node,
            "no-update",
            'says `_stream_mode = "evolving"` but has no `update` method',
            "Define `update(self, state, chunk)` that returns the next state, or say that the "
            'stream mode is `"fixed"` or `"barrier"`.',
        )
        for node, meta in facts.metas.items()
        if meta.stream_mode is StreamMode.Evolving
        and not callable(getattr(facts.topology.nodes[node].filter, "update", None))
    ]


def _error(facts: Facts, node: NodeId, code: str, problem: str, help: str) -> Diagnostic:
    return Diagnostic(
        level="error",
        code=code,
        node=node,
        message=f"`{facts.labels[node]}` {problem}",
        labels=(Label(node=node, role="fault"),),
        help=help,
    )

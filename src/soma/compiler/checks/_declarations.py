"""A filter says what it is in words that soma knows, and keeps its word."""

from collections.abc import Callable
from inspect import signature

from soma.compiler._facts import Facts
from soma.core import Diagnostic, FilterKind, Label, NodeId, StreamMode
from soma.errors import listing

_WANTED = {"fit": "fit(self, x, y=None)", "forward": "forward(self, x, state)"}


def declarations(facts: Facts) -> list[Diagnostic]:
    """An error for each filter that declares an unknown kind or stream mode."""
    help = (
        f"`_kind` is one of {listing(FilterKind)}; `_stream_mode` is one of {listing(StreamMode)}."
    )
    return [
        _error(facts, node, "declaration", f"does not say what it is: {problem}", help)
        for node, problem in facts.undeclared.items()
    ]


def signatures(facts: Facts) -> list[Diagnostic]:
    """An error for each filter whose `fit` or `forward` cannot take what it will be given."""
    takes: dict[object, bool] = {}
    found = []
    for node in facts.topology.nodes.values():
        for name, wanted in _WANTED.items():
            method = getattr(node.filter, name)
            function = getattr(method, "__func__", method)
            if function not in takes:
                takes[function] = _takes_two(method)
            if not takes[function]:
                problem = f"has a `{name}` that cannot be called with two arguments"
                found.append(
                    _error(facts, node.id, "signature", problem, f"Write it as `{wanted}`.")
                )
    return found


def _takes_two(method: Callable[..., object]) -> bool:
    try:
        signature(method).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # compiled code that does not tell
        return True
    return True


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

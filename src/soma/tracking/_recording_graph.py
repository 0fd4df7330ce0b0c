"""From a declared topology to the record that a run directory keeps of it."""

from collections.abc import Callable
from inspect import Parameter, signature
from itertools import islice

from soma.core import Filter, Node, Topology, has_module, searched_values
from soma.draw import printable, shortened
from soma.tracking._graph_record import GraphRecord, NodeRecord
from soma.tracking._plain import plain, shown, text_out

_MOST_ARGUMENTS = 50
_MOST_DOC = 200  # columns


def graph_record(topology: Topology, name: str, hidden: Callable[[str], str] = str) -> GraphRecord:
    """Return nodes and edges as data; a module that is built is counted, none is imported.

    Args:
        hidden: takes secrets out of a text.
    """
    wiring = topology.wiring()
    ordered = dict.fromkeys([*wiring.order, *topology.nodes])  # those of a cycle come last
    return GraphRecord(
        name=text_out(name),
        nodes=tuple(_node_record(topology.nodes[node], hidden) for node in ordered),
        edges=tuple(
            (source, node) for node in ordered for source in wiring.predecessors.get(node, ())
        ),
    )


def _node_record(node: Node, hidden: Callable[[str], str]) -> NodeRecord:
    filter = node.filter
    counted = _counted(filter) if has_module(filter) else None
    return NodeRecord(
        id=node.id,
        class_name=text_out(printable(type(filter).__name__)),
        kind=_kind(filter),
        has_module=has_module(filter),
        parameters=None if counted is None else counted[0],
        trainable=None if counted is None else counted[1],
        config=_config(filter, hidden),
        doc=_doc(filter),
        target=node.target,
    )


def _kind(filter: Filter) -> str:
    try:
        return filter.meta().kind.value
    except ValueError:  # what a compilation refuses, and shows
        return str(plain(filter._kind))


def _counted(filter: Filter) -> tuple[int, int] | None:
    """Return how many elements the parameters have, and how many of them are trained."""
    # The frozen twin of a module asks for no gradient, whatever the module does.
    module = getattr(filter, "_live", None) or getattr(filter, "_module", None)
    if module is None:
        return None
    try:
        pairs = [(one.numel(), one.requires_grad) for one in module.parameters()]
    except Exception:  # a lazy module has parameters without a size
        return None
    return sum(size for size, _ in pairs), sum(size for size, asks in pairs if asks)


def _config(filter: Filter, hidden: Callable[[str], str]) -> dict[str, str]:
    """Return arguments of the constructor and searched attributes by name, each shortened."""
    given = filter._arguments
    try:
        bound = signature(type(filter)).bind(*given.positional, **given.named)
        arguments = dict(bound.arguments)
        for name, one in bound.signature.parameters.items():
            if one.kind is Parameter.VAR_KEYWORD:
                arguments |= arguments.pop(name, {})
    except (TypeError, ValueError):  # a class without a signature
        arguments = dict(given.named)
    kept = islice({**arguments, **searched_values(filter)}.items(), _MOST_ARGUMENTS)
    return {text_out(str(name)): shown(value, hidden) for name, value in kept}


def _doc(filter: Filter) -> str:
    text = vars(type(filter)).get("__doc__")
    lines = text.strip().splitlines() if isinstance(text, str) else []
    return text_out(shortened(printable(lines[0]), _MOST_DOC)) if lines else ""

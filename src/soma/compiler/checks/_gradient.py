"""Says where gradients stop, who gets none because of it, and who still does."""

from collections.abc import Iterable, Iterator

from soma.compiler._facts import Facts
from soma.compiler._flow import Cut, cuts
from soma.compiler._labels import boxed
from soma.core import Diagnostic, Label, NodeId

_LONGEST_RUN = 4
_MOST_SENTENCES = 3


def gradient(facts: Facts) -> list[Diagnostic]:
    """A warning for each cut that leaves nodes without gradients, a note for the others."""
    return [_diagnostic(facts, cut) for cut in cuts(facts)]


def _diagnostic(facts: Facts, cut: Cut) -> Diagnostic:
    first = cut.run[0]
    kind = facts.metas[first].kind.name
    others = len(cut.run) - 1
    more = f" and {others} more" if others else ""
    drawn, marked = _drawn(facts, cut)
    return Diagnostic(
        level="warning" if cut.cut_off or cut.at_root else "note",
        code="gradient",
        node=first,
        message=f"Gradient flow interrupted at `{facts.labels[first]}` (FilterKind::{kind}){more}",
        position=facts.positions[first],
        drawn=drawn,
        marked=marked,
        remarks=tuple(_remarks(facts, cut)),
        labels=_labels(cut),
        help=_help(cut),
    )


def _drawn(facts: Facts, cut: Cut) -> tuple[tuple[str, ...], tuple[int, int]]:
    labels = [facts.labels[node] for node in cut.path]
    begin, end = cut.inside
    if end - begin > _LONGEST_RUN:
        labels[begin + 2 : end - 1] = ["…"]
        end = begin + 4
    return tuple(labels), (begin, end)


def _remarks(facts: Facts, cut: Cut) -> Iterator[str]:
    def named(nodes: Iterable[NodeId]) -> str:
        return boxed(facts.labels[node] for node in nodes)

    count = len(cut.run)
    yield (
        "This filter is not differentiable."
        if count == 1
        else f"These {count} filters are not differentiable."
    )
    if cut.leaves and not cut.at_root:
        yield f"No loss on {named(cut.leaves)} reaches anything above it."
    if cut.at_root and cut.restarts:
        yield f"Along this path gradients get back to {named(cut.restarts)} and no further."
    elif cut.cut_off and cut.restarts:
        yield f"Gradients from {named(cut.restarts)} do not reach {named(cut.cut_off)}."
    elif cut.cut_off:
        verb = "get" if len(cut.cut_off) > 1 else "gets"
        yield f"{named(cut.cut_off)} {verb} no gradient from any leaf."
    elif cut.restarts:
        yield f"Gradients from {named(cut.restarts)} end here."
    elif not cut.at_leaf:
        yield "No gradient gets back this far: the flow is interrupted again below."
    yield from _open_ways(facts, cut)


def _open_ways(facts: Facts, cut: Cut) -> Iterator[str]:
    by_way: dict[tuple[NodeId, ...], list[NodeId]] = {}
    for node, way in cut.reached:
        by_way.setdefault(way, []).append(node)
    groups = [(nodes, boxed(facts.labels[one] for one in way)) for way, nodes in by_way.items()]
    if len(groups) > _MOST_SENTENCES:
        rest = [node for nodes, _ in groups[_MOST_SENTENCES - 1 :] for node in nodes]
        groups[_MOST_SENTENCES - 1 :] = [(rest, "other nodes")]
    for nodes, through in groups:
        reached = boxed(facts.labels[node] for node in nodes)
        yield f"Gradients still reach {reached} through {through}."


def _labels(cut: Cut) -> tuple[Label, ...]:
    still = dict.fromkeys(one for node, way in cut.reached for one in (node, *way))
    return (
        *(Label(node=node, role="cut") for node in cut.run),
        *(Label(node=node, role="cut-off") for node in cut.cut_off),
        *(Label(node=node, role="learns") for node in still),
        *(Label(node=node, role="restart") for node in cut.restarts),
    )


def _help(cut: Cut) -> str:
    one = len(cut.run) == 1
    it, its, classes = ("it", "its", "its class") if one else ("them", "their", "their classes")
    place = (
        "a differentiable filter in its place" if one else "differentiable filters in their place"
    )
    declare = (
        f"Where {its} `forward` is made of torch operations on a constant state, put "
        f"`_differentiable = True` on {classes}."
    )
    if cut.at_root:
        return (
            f"This is as it should be if nothing before {it} has to learn and the input needs no "
            f"gradient; otherwise use {place}. {declare}"
        )
    if not cut.cut_off:
        return (
            f"This is as it should be if the other paths are enough; if not, use {place}. {declare}"
        )
    if cut.at_leaf:
        return f"Put a differentiable leaf beside {it} to train on, or use {place}. {declare}"
    return f"Use {place}, or move {it} into the prefix, above everything that learns. {declare}"

"""Marks the stretches of a plan through which gradients pass: `Composite`."""

from itertools import groupby

from soma.compiler._parts import Composite, Empty, Execute, Parallel, Part, Sequence


def with_stretches(part: Part) -> Part:
    """Return the tree with neighbours in a sequence joined where all of them are differentiable."""
    marked, differentiable = _marked(part)
    return _joined(marked) if differentiable else marked


def _marked(part: Part) -> tuple[Part, bool]:
    # A part that is differentiable throughout comes back as it is: whoever holds it decides
    # whether it stands in a longer stretch, so no `Composite` lies in another one.
    if isinstance(part, Execute):
        return part, part.differentiable
    if isinstance(part, Empty):
        return part, False
    inner = [_marked(one) for one in part.parts]
    if all(differentiable for _, differentiable in inner):
        return part, True
    if isinstance(part, Parallel):
        return Parallel(tuple(_joined(one) if flows else one for one, flows in inner)), False
    parts: list[Part] = []
    for differentiable, run in groupby(inner, key=lambda one: one[1]):
        stretch = tuple(one for one, _ in run)
        if not differentiable:
            parts += stretch
        else:
            parts.append(Composite(stretch) if len(stretch) > 1 else _joined(stretch[0]))
    return Sequence(tuple(parts)), False


def _joined(part: Part) -> Part:
    if isinstance(part, Sequence):
        return Composite(part.parts)
    if isinstance(part, Parallel):
        return Parallel(tuple(map(_joined, part.parts)))
    return part

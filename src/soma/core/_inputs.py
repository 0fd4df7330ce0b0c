"""`Inputs`: one part of the data for each root of a graph."""

from collections.abc import Iterator, Mapping

from soma.core._topology import NodeId
from soma.errors import InvalidInput, did_you_mean, listing


class Inputs(Mapping[NodeId, object]):
    """Give each root its own input: `g.forward(soma.Inputs(audio=a, text=t))`.

    Ids that are no Python names go in as a mapping:

    >>> Inputs({"left.scale": 1}, right=2)
    Inputs({'left.scale': 1, 'right': 2})
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[NodeId, object] | None = None, /, **named: object) -> None:
        self._parts: dict[NodeId, object] = {**(parts or {}), **named}

    def __getitem__(self, root: NodeId) -> object:
        return self._parts[root]

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"Inputs({self._parts!r})"


def is_read_once(value: object) -> bool:
    """Whether a value is gone once it has been read, as a generator or an open file is."""
    return hasattr(type(value), "__next__")


def per_root(x: object, roots: tuple[NodeId, ...]) -> Mapping[NodeId, object]:
    """Return what each root gets: all of `x`, or its own part of an `Inputs`.

    Raises:
        InvalidInput: an `Inputs` that leaves a root out, or names something that is no root; a
            generator for several roots.
    """
    if type(x) is not Inputs:
        if len(roots) > 1 and is_read_once(x):
            raise InvalidInput(
                f"a {type(x).__name__} came, which can be read once, and {listing(roots)} each "
                "read it: all but the first would find nothing. Give a list or an array."
            )
        return dict.fromkeys(roots, x)
    known = frozenset(roots)
    for name in x:
        if name not in known:
            raise InvalidInput(
                f"`Inputs` names `{name}`, which is no root of this graph; its roots are "
                f"{listing(roots)}.{did_you_mean(str(name), roots)}"
            )
    missing = [root for root in roots if root not in x]
    if missing:
        raise InvalidInput(
            f"`Inputs` gives nothing for {listing(missing)}; every root wants its part."
        )
    return x

"""`Recall`: a filter's identity, remembered until something of the filter may have changed.

`identity` reads everything at each call. Most filters hold numbers and texts alone, and these stay
equal for as long as they are the same objects; code is checked once in a run.
"""

from collections.abc import Sequence
from itertools import chain
from operator import is_
from typing import NamedTuple

from soma._extras import loaded
from soma.cache._fingerprint import Identity, identity
from soma.cache._identity_guards import REACH
from soma.cache._identity_names import in_library
from soma.cache._identity_values import ATOMS
from soma.cache._reach import Reach
from soma.core import Filter

__all__ = ["Glance", "Moment", "Recall"]


class Moment:
    """The classes checked in one run, in which nobody edits code: each is checked once."""

    __slots__ = ("_classes",)

    def __init__(self) -> None:
        self._classes: dict[type, object] = {}

    def mark(self, cls: type) -> object:
        """Return a value that stays equal for as long as the code of a class is unchanged."""
        if cls not in self._classes:
            reach = vars(cls).get(REACH)
            if isinstance(reach, Reach):
                self._classes[cls] = reach if reach.holds(cls) else None
            else:
                self._classes[cls] = in_library(cls)
        return self._classes[cls]

    def forget(self, cls: type) -> None:
        """Check a class again when it is asked for next."""
        self._classes.pop(cls, None)


class _Known(NamedTuple):
    """An identity, and what it was read from."""

    identity: Identity
    attributes: dict[str, object]
    arguments: object
    mark: object


class Recall:
    """One filter's identity, as of the last time it was asked for."""

    __slots__ = ("_known", "filter")

    def __init__(self, filter: Filter) -> None:
        self.filter = filter
        self._known: _Known | None = None  # replaced whole: other threads ask too

    def identity(self, moment: Moment) -> Identity:
        """Return what `soma.cache.identity` would.

        Raises:
            Unfingerprintable: a part of the filter cannot be told from another.
        """
        filter, known = self.filter, self._known
        attributes = vars(filter)
        if (
            known is not None
            and attributes.keys() == known.attributes.keys()
            and all(map(is_, attributes.values(), known.attributes.values()))
            and filter._arguments is known.arguments
            and moment.mark(type(filter)) == known.mark
        ):
            return known.identity
        before, arguments = dict(attributes), filter._arguments
        found = identity(filter)
        moment.forget(type(filter))
        mark = moment.mark(type(filter))
        plain = mark is not None and self._is_plain()
        self._known = _Known(found, before, arguments, mark) if plain else None
        return found

    @property
    def plain(self) -> bool:
        """Whether the last identity holds for as long as a `Glance` at the filter does."""
        return self._known is not None

    def _is_plain(self) -> bool:
        """Whether all that counts changes only by another object in its place."""
        filter = self.filter
        torch = loaded("torch")
        if torch is not None and isinstance(filter, torch.nn.Module):
            return False  # weights and parts lie in dicts that stay the same objects
        given = filter._arguments
        public = [
            value
            for name, value in vars(filter).items()
            if name == "_cache_version" or not name.startswith("_")
        ]
        values = (*public, *given.named.values(), *given.positional)
        return ATOMS.issuperset(map(type, values)) and not _has_slots(type(filter))


class Glance:
    """Several filters at one moment: tells whether those that are plain are what they were then."""

    __slots__ = ("_filters", "_marks", "_names", "_values")

    def __init__(self, filters: Sequence[Filter], moment: Moment) -> None:
        spaces = [*map(vars, filters)]
        self._filters = filters
        self._names = [*map(tuple, spaces)]
        self._values = [*chain.from_iterable(map(dict.values, spaces))]
        self._marks = {cls: moment.mark(cls) for cls in map(type, filters)}

    def holds(self, moment: Moment) -> bool:
        """Whether all attributes are the same objects, and the code of each class is the same."""
        spaces = [*map(vars, self._filters)]
        return (
            [*map(tuple, spaces)] == self._names
            and all(map(is_, chain.from_iterable(map(dict.values, spaces)), self._values))
            and all(moment.mark(cls) == mark for cls, mark in self._marks.items())
        )


def _has_slots(cls: type) -> bool:
    """Whether instances keep attributes where `vars` does not look."""
    ours = cls.__mro__[: cls.__mro__.index(Filter)]
    return any(vars(base).get("__slots__") for base in ours)

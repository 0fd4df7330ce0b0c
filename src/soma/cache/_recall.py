"""Knows what a filter was, and says so again while nothing of it can have changed.

`identity` reads everything at each call. Most filters hold numbers and texts alone, and those
are what they were for as long as they are the same objects; code is looked at once in a run.
"""

from operator import is_

from soma._extras import loaded
from soma.cache._fingerprint import Identity, identity
from soma.cache._identity_guards import REACH
from soma.cache._identity_names import in_library
from soma.cache._identity_values import ATOMS
from soma.cache._reach import Reach
from soma.core import Filter

__all__ = ["Moment", "Recall"]


class Moment:
    """A run, in which nobody edits code: each class is looked at once."""

    __slots__ = ("_classes",)

    def __init__(self) -> None:
        self._classes: dict[type, object] = {}

    def mark(self, cls: type) -> object:
        """Return what stays equal for as long as the code of a class stays as it is."""
        if cls not in self._classes:
            reach = vars(cls).get(REACH)
            if isinstance(reach, Reach):
                self._classes[cls] = reach if reach.holds(cls) else None
            else:
                self._classes[cls] = in_library(cls)
        return self._classes[cls]

    def forget(self, cls: type) -> None:
        """Look at a class again."""
        self._classes.pop(cls, None)


class Recall:
    """One filter's identity, as of the last time it was asked for."""

    __slots__ = ("_arguments", "_attributes", "_known", "_mark", "filter")

    def __init__(self, filter: Filter) -> None:
        self.filter = filter
        self._known: Identity | None = None
        self._mark: object = None
        self._attributes: dict[str, object] = {}
        self._arguments: object = None

    def identity(self, moment: Moment) -> Identity:
        """Return what `soma.cache.identity` would.

        Raises:
            Unfingerprintable: a part of the filter cannot be told from another.
        """
        filter = self.filter
        known, attributes = self._known, vars(filter)
        if (
            known is not None
            and attributes.keys() == self._attributes.keys()
            and all(map(is_, attributes.values(), self._attributes.values()))
            and filter._arguments is self._arguments
            and moment.mark(type(filter)) == self._mark
        ):
            return known
        self._known, before = None, dict(attributes)
        found = identity(filter)
        moment.forget(type(filter))
        mark = moment.mark(type(filter))
        if mark is not None and self._is_plain():
            self._known, self._mark = found, mark
            self._attributes, self._arguments = before, filter._arguments
        return found

    def _is_plain(self) -> bool:
        """Whether whatever counts can only change by another object in its place."""
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


def _has_slots(cls: type) -> bool:
    """Whether instances keep attributes where `vars` does not look."""
    ours = cls.__mro__[: cls.__mro__.index(Filter)]
    return any(vars(base).get("__slots__") for base in ours)

"""Remembers what a walk over code read, to tell at little cost whether all is as it was.

Nothing is trusted because it was so before: every global, attribute and closure that was
read is read again, and must be the very object it was. What can change in place has its
digest taken again. `_reach.py` reads through this.
"""

import builtins
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter, is_
from types import CellType, FunctionType
from typing import Final

from soma.cache._identity_parts import WRAPPERS
from soma.cache._identity_refusal import counts_by_type

REACH: Final = "_soma_reach"  # where a class keeps what was found; no part of the class
ABSENT: Final = object()

_FUNCTION = attrgetter("__code__", "__defaults__", "__kwdefaults__", "__closure__")
_CLASS = attrgetter("__mro__", "__class__")
_CELL = attrgetter("cell_contents")

# What stays as it is for as long as it is the same object.
_FIXED = frozenset(
    {*WRAPPERS, type(None), bool, int, float, complex, str, bytes, type(...), re.Pattern}
)


@dataclass(slots=True)
class _Namespace:
    """What was read of a mapping of names."""

    names: Mapping[str, object]
    read: dict[str, object] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    size: int | None = None  # set where all of it was read

    def holds(self) -> bool:
        names, read = self.names, self.read
        if self.size is not None and len(names) - (REACH in names) != self.size:
            return False
        return all(map(is_, map(names.get, read), read.values())) and (
            not self.absent or self.absent.isdisjoint(names)
        )


class Guards:
    """Everything that was read, and whether it would be read alike now."""

    def __init__(self) -> None:
        self._namespaces: dict[int, _Namespace] = {}
        self._objects: list[tuple[Callable[[object], tuple[object, ...]], object, object]] = []
        self._cells: list[tuple[CellType, object]] = []
        self._data: list[tuple[object, str, str]] = []

    def read(self, names: Mapping[str, object], name: str) -> object:
        """Return what `name` stands for, or `ABSENT`."""
        space = self._space(names)
        value = names.get(name, ABSENT)
        if value is ABSENT:
            space.absent.add(name)
        else:
            space.read[name] = value
        return value

    def read_all(self, names: Mapping[str, object]) -> dict[str, object]:
        """Return all of a mapping but what soma keeps there."""
        space = self._space(names)
        space.read = {name: value for name, value in names.items() if name != REACH}
        space.size = len(space.read)
        return dict(space.read)

    def read_function(self, function: FunctionType) -> None:
        """Remember what a function is made of."""
        self._objects.append((_FUNCTION, function, _FUNCTION(function)))
        if function.__kwdefaults__:
            self.read_all(function.__kwdefaults__)

    def read_class(self, cls: type) -> dict[str, object]:
        """Return a class's own attributes."""
        self.read_bases(cls)
        return self.read_all(vars(cls))

    def read_bases(self, cls: type) -> None:
        """Remember what a class is derived from."""
        self._objects.append((_CLASS, cls, _CLASS(cls)))

    def read_cell(self, cell: CellType) -> object:
        """Return what a closure holds, or `ABSENT` while it holds nothing."""
        content = _content(cell)
        self._cells.append((cell, content))
        return content

    def read_data(self, value: object, path: str, digest: str) -> None:
        """Remember the digest of a value that may change in place."""
        fixed = type(value) in _FIXED or counts_by_type(value)
        if isinstance(value, tuple | frozenset):
            fixed = _FIXED.issuperset(map(type, value))
        if not fixed:
            self._data.append((value, path, digest))

    def hold(self, digest_of: Callable[[object, str], str]) -> bool:
        """Whether all is as it was; `digest_of` takes the digest of a value again."""
        for space in self._namespaces.values():
            if not space.holds():
                return False
        for read, of, was in self._objects:
            if not all(map(is_, read(of), was)):  # type: ignore[call-overload]
                return False
        for cell, content in self._cells:
            if _content(cell) is not content:
                return False
        return all(digest_of(value, path) == found for value, path, found in self._data)

    def _space(self, names: Mapping[str, object]) -> _Namespace:
        # A class gives another view of its attributes each time; what lies under it is one.
        return self._namespaces.setdefault(id(names), _Namespace(names))


def builtins_of(function: FunctionType) -> Mapping[str, object]:
    """Return the names a function finds where its module has none."""
    found: Mapping[str, object] = getattr(function, "__builtins__", vars(builtins))
    return found


def _content(cell: CellType) -> object:
    try:
        return _CELL(cell)
    except ValueError:
        return ABSENT

"""`identity`: all that the results of a filter depend on: class, configuration, code, libraries.

All of it is read at each call. The engine keys results by `Identity.digest`; the rest is for
people who ask why a result was not found again. `_reach.py` walks the code.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from reprlib import Repr
from types import FunctionType
from typing import NamedTuple

from soma.cache._digest import combine, digest
from soma.cache._identity_names import class_name, in_library, is_class, pin_of
from soma.cache._identity_parts import attributes_of
from soma.cache._identity_refusal import PIN, Unfingerprintable
from soma.cache._identity_values import ATOMS, Values
from soma.cache._location import PYTHON, is_module, library_of_module
from soma.cache._reach import Reach, reach_of
from soma.core import Filter, has_module

__all__ = ["Identity", "Unfingerprintable", "identity"]

_FORMAT = 1  # a new number here makes every stored entry a miss
_LONGEST = 80
_REMEMBERED = 2_048  # bytes of a plain configuration
_PLACE = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a filter is, as far as its results depend on it."""

    digest: str
    class_name: str
    config: Mapping[str, tuple[str, str]]  # attribute -> its digest, and its value for people
    code: Mapping[str, str]  # function, class or constant of the user's own -> digest
    libraries: Mapping[str, str]  # distribution -> version


def identity(filter: Filter) -> Identity:
    """Return what makes `filter` the filter it is, as it stands now.

    >>> class Scale(Filter):
    ...     def forward(self, x, state):
    ...         return x * self.by
    >>> identity(Scale(by=2)).digest == identity(Scale(by=2)).digest
    True
    >>> identity(Scale(by=2)).digest == identity(Scale(by=3)).digest
    False

    Raises:
        Unfingerprintable: a part of it cannot be told from another; the error says which.
    """
    cls = type(filter)
    try:
        found = _Found()
        name = class_name(cls)
        code = _code_of(filter, name, found)
        attributes, arguments = attributes_of(filter)
        plain = _plain(attributes), _plain(arguments)
        if plain[0] is not None and plain[1] is not None:
            about = _about_plain(name, code, tuple(found.libraries.items()), plain[0], plain[1])
        else:
            config = Values(found.refer).told(attributes, arguments)
            about = _about(name, code, found.libraries, config)
    except Unfingerprintable:
        raise
    except Exception as error:  # attributes and classes of users run code of their own
        reason = f"reading it failed with {type(error).__name__}: {error}; {PIN}"
        raise Unfingerprintable(cls.__qualname__, reason) from error
    return Identity(about.digest, name, about.config, found.entries, found.libraries)


class _About(NamedTuple):
    """The digest of all that counts, and the configuration for people."""

    digest: str
    config: dict[str, tuple[str, str]]


def _about(
    name: str,
    code: str | None,
    libraries: Mapping[str, str],
    config: Mapping[str, tuple[str, object]],
) -> _About:
    """Take what counts together."""
    told = sorted(config.items())
    whole = combine(
        *("identity", _FORMAT, name, code, len(told)),
        *(part for attribute, (given, _) in told for part in (attribute, given)),
        *(part for library in sorted(libraries.items()) for part in library),
    )
    return _About(whole, {attribute: (given, _text(value)) for attribute, (given, value) in told})


_Item = tuple[str, type, str | None, object]


def _plain(values: dict[str, object]) -> tuple[_Item, ...] | None:
    """Return a configuration of numbers and texts exactly, to look it up by; None: it holds more.

    Equal numbers of two types, and the two zeros, are told apart.
    """
    items = []
    for name, value in values.items():
        kind = type(value)
        if kind not in ATOMS or kind is complex:
            return None
        if isinstance(value, str | bytes) and len(value) > _REMEMBERED:
            return None
        items.append((name, kind, value.hex() if isinstance(value, float) else None, value))
    return tuple(items)


@lru_cache(maxsize=1_024)
def _about_plain(
    name: str,
    code: str | None,
    libraries: tuple[tuple[str, str], ...],
    attributes: tuple[_Item, ...],
    arguments: tuple[_Item, ...],
) -> _About:
    """Take together what counts of a plain configuration: it depends on nothing else."""
    config = Values(_refer_nothing).told(_values(attributes), _values(arguments))
    return _about(name, code, dict(libraries), config)


def _values(items: tuple[_Item, ...]) -> dict[str, object]:
    return {name: value for name, _, _, value in items}


def _refer_nothing(value: object, path: str) -> None:
    return None


class _Found:
    """Gathers what a filter and the values in its configuration reach."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}
        self.libraries: dict[str, str] = {}

    def refer(self, value: object, path: str) -> str | None:
        """Return what stands for code in a value: all that it reaches."""
        found = in_library(value)
        if found is not None:
            library, name = found
            self.libraries[library.name] = library.version
            return combine("library", library.name, name)
        if not (is_class(value) or is_module(value) or type(value) is FunctionType):
            return None
        reach = reach_of(value, path)
        self._add(reach)
        return reach.digest

    def _add(self, reach: Reach) -> None:
        """Take over what was reached."""
        self.libraries.update(reach.libraries)
        if not self.entries:
            self.entries.update(reach.entries)
            return
        for label, entry in reach.entries.items():
            free, number = label, 1
            while self.entries.setdefault(free, entry) != entry:
                number += 1
                free = f"{label}#{number}"


def _code_of(filter: Filter, name: str, found: _Found) -> str | None:
    """Return the digest of the code, or of the version that stands for it."""
    cls = type(filter)
    own = vars(filter).get("_cache_version")
    if own is not None:
        found.entries[f"{name}._cache_version"] = digest(own)
        return combine("version", digest(own))
    code = found.refer(cls, name)
    if pin_of(cls) is not cls:
        found.libraries[PYTHON.name] = PYTHON.version
        if has_module(filter):
            found.libraries.update([library_of_module("torch") or PYTHON])
    return code


def _text(value: object) -> str:
    """Show a value to people, in few letters and without a place in memory."""
    if type(value) in (int, float, bool, type(None)):
        return _cut(repr(value))
    if type(value) is FunctionType or is_class(value):
        return _cut(f"{value.__module__}.{value.__qualname__}")  # type: ignore[attr-defined]
    if is_module(value):
        return _cut(f"module {value.__name__}")  # type: ignore[attr-defined]
    try:
        return _cut(_SHORT.repr(value))
    except Exception:  # a value whose own `repr` fails must not hide the rest
        return _cut(f"<{type(value).__qualname__}>")


def _cut(text: str) -> str:
    text = _PLACE.sub("", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class _Short(Repr):
    """Shows a few of many items, and objects without their place in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = _LONGEST

    def repr_instance(self, x: object, level: int) -> str:
        """Show an object as it shows itself, if it says more than where it is."""
        if type(x).__repr__ is object.__repr__:
            return f"<{type(x).__qualname__}>"
        return " ".join(repr(x).split())


_SHORT = _Short()

"""Takes the digest of values that hold code: objects, partial calls, methods, filters.

Plain data goes to `_digest.py`. Functions, classes and modules in a value go to `refer`,
which tells what stands for them. Equal contents have one digest, shared or not.
"""

import sys
from collections.abc import Callable
from copyreg import dispatch_table
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property
from math import inf
from typing import Any, ParamSpec, TypeVar

from soma._extras import loaded
from soma.cache._digest import Undigestible, combine, digest
from soma.cache._identity_parts import attributes_of, module_parts, wrapped_by
from soma.cache._identity_refusal import (
    INSTEAD,
    Unfingerprintable,
    counts_by_type,
    refuse_live,
)
from soma.cache._location import library_of_module
from soma.core import Filter

Refer = Callable[[object, str], str | None]

ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})

_CONTAINERS = (tuple, list, dict, set, frozenset, Enum)
# Where values were found by their name: only where to look first, so an `id` is enough.
_homes: dict[int, str] = {}

_MOST = 100_000  # objects: a web of more has too many ways through it


class Values:
    """Takes digests; one is made for each value that stands alone."""

    def __init__(self, refer: Refer) -> None:
        self._refer = refer
        self._open: dict[int, int] = {}
        self._closed: dict[int, tuple[object, str]] = {}
        self._outermost: float = inf  # how far out the values being read refer back
        self._met = 0

    def digest(self, value: object, path: str) -> str:
        """Return the digest of a value.

        Raises:
            Unfingerprintable: a part of it cannot be told from another.
        """
        if type(value) in ATOMS:
            return digest(value)
        return self._refer(value, path) or self._once(value, path)

    def configuration(self, filter: Filter, path: str = "") -> dict[str, tuple[str, object]]:
        """Return the digest and the value of each attribute, and of what was given otherwise."""
        return self.told(*attributes_of(filter), path)

    def told(
        self, attributes: dict[str, object], arguments: dict[str, object], path: str = ""
    ) -> dict[str, tuple[str, object]]:
        """Return the same of attributes and arguments that were read already.

        What the constructor got may live on where nobody sees it, in a private attribute. So
        it counts as well, unless a public attribute of that name says the same.
        """
        found: dict[str, tuple[str, object]] = {}
        prefix = f"{path}." if path else ""
        for name, value in attributes.items():
            found[name] = (self.digest(value, prefix + name), value)
        for name, value in arguments.items():
            if name in found and found[name][1] is value:
                continue
            given = self.digest(value, prefix + name)
            if name not in found:
                found[name] = (given, value)
            elif found[name][0] != given:
                found[f"{name} (as constructed)"] = (given, value)
        return found

    def _once(self, value: object, path: str) -> str:
        """Take apart, minding values that hold themselves and values met before."""
        key = id(value)
        if key in self._closed:
            return self._closed[key][1]
        depth = len(self._open)
        if key in self._open:
            self._outermost = min(self._outermost, self._open[key])
            return combine("itself", depth - self._open[key])
        self._met += 1
        if self._met > _MOST:
            raise Unfingerprintable(path, f"it is a web of more than {_MOST:,} objects; {INSTEAD}")
        self._open[key] = depth
        before, self._outermost = self._outermost, inf
        try:
            found = self._apart(value, path)
        finally:
            del self._open[key]
        if self._outermost >= depth:
            self._closed[key] = (value, found)
            self._outermost = before
        else:
            self._outermost = min(self._outermost, before)
        return found

    def _apart(self, value: Any, path: str) -> str:
        cls = type(value)
        if cls is list or cls is tuple:
            if ATOMS.issuperset(map(type, value)):
                return digest(value)
            return combine(
                *(cls.__name__, *(self.digest(v, f"{path}[{i}]") for i, v in enumerate(value)))
            )
        if cls is dict:
            return self._dict(value, path)
        if cls is set or cls is frozenset:
            return combine(cls.__name__, *sorted(self.digest(item, path) for item in value))
        if counts_by_type(value):
            return combine("by type", self.digest(cls, path))
        refuse_live(value, path)
        if isinstance(value, Filter):
            found = sorted(self.configuration(value, path).items())
            parts = [part for name, (given, _) in found for part in (name, given)]
            return combine("filter", self.digest(cls, path), *parts)
        if isinstance(value, Enum):
            return combine(
                *("member", self.digest(cls, path), value.name, self.digest(value.value, path))
            )
        inside = wrapped_by(value) or module_parts(value)
        if inside is not None:
            items = [self.digest(part, f"{path}{name}") for name, part in inside]
            return combine("wrapper", self.digest(cls, path), *items)
        return self._leaf(value, path) if _is_leaf(cls) else self._rebuilt(value, path)

    def _dict(self, value: dict[object, object], path: str) -> str:
        if ATOMS.issuperset(map(type, value)) and ATOMS.issuperset(map(type, value.values())):
            return digest(value, unordered_dicts=True)
        pairs = [
            combine(
                self.digest(key, f"{path} (a key)"),
                self.digest(item, f"{path}[{key!r}]" if type(key) in ATOMS else path),
            )
            for key, item in value.items()
        ]
        return combine("dict", *sorted(pairs))

    def _leaf(self, value: object, path: str) -> str:
        """Take the digest of a library's object as that of a value, if it is one."""

        def foreign(part: object, at: str) -> bytes | None:
            if _is_array(part):
                return None  # what an array cannot be keyed by is known better below
            inner = self.digest(part, path + at) if part is not value else None
            return (inner or self._rebuilt(part, path + at)).encode()

        try:
            return digest(value, unordered_dicts=True, foreign=foreign)
        except Undigestible as error:
            raise Unfingerprintable(path + error.path, f"{error.reason}; {INSTEAD}") from error

    def _rebuilt(self, value: Any, path: str) -> str:
        """Tell an object by what it would be made from again, as `copy` asks for it."""
        cls = type(value)
        try:
            reduce = dispatch_table.get(cls)
            form = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception as error:  # whatever a class's own code raises
            reason = f"a `{cls.__qualname__}` cannot be told from another ({error}); {INSTEAD}"
            raise Unfingerprintable(path, reason) from error
        if isinstance(form, str):
            return self._named(value, form, path)
        make, arguments, state, items, pairs = [*form[:5], None, None, None][:5]
        if isinstance(state, dict):
            state = without_derived(cls, state)
        parts = (make, arguments, state, tuple(items or ()), tuple(pairs or ()))
        return combine(
            "object", self.digest(cls, path), *(self.digest(part, path) for part in parts)
        )

    def _named(self, value: object, name: str, path: str) -> str:
        """Tell an object that is nothing but a name by that name, where it is one."""
        if isinstance(value, TypeVar | ParamSpec):
            return combine("named", self.digest(type(value), path), name)
        home = getattr(value, "__module__", None) or type(value).__module__
        known = _homes.get(id(value), home)
        for module in (known, home, *sorted(sys.modules)):
            names = getattr(sys.modules.get(module), "__dict__", {})
            if names.get(name) is value and library_of_module(module) is not None:
                _homes[id(value)] = module
                return combine("named", self.digest(sys.modules[module], path), name)
        reason = f"`{name}`, a `{type(value).__qualname__}`, is not to be found under its name"
        raise Unfingerprintable(path, f"{reason}; {INSTEAD}")


def without_derived(cls: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a `cached_property` keeps: it follows from the rest."""
    kept = {
        name
        for base in cls.__mro__
        for name, value in vars(base).items()
        if type(value) is cached_property
    }
    return {name: value for name, value in attributes.items() if name not in kept}


def _is_leaf(cls: type) -> bool:
    """Whether objects of a class hold plain data, as far as a library tells."""
    if cls.__module__ == "collections" or is_dataclass(cls) or issubclass(cls, _CONTAINERS):
        return False
    sklearn = loaded("sklearn.base")
    if sklearn is not None and issubclass(cls, sklearn.BaseEstimator):
        return False  # its parameters may be functions and classes of the user's own
    return library_of_module(cls.__module__) is not None


def _is_array(value: object) -> bool:
    numpy, torch = loaded("numpy"), loaded("torch")
    kinds = [numpy.ndarray] if numpy else []
    return isinstance(value, tuple([*kinds, torch.Tensor] if torch else kinds))

"""Filters become data and are made again: by their class, its arguments and public attributes.

Attributes that cannot be stored, such as a connection, are left to the constructor, and so are
those whose names begin with `_`.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from inspect import Parameter, signature
from types import BuiltinFunctionType, FunctionType
from typing import Any

from soma._extras import loaded
from soma.cache import Unencodable, encode
from soma.checkpoint._allowed import Allowed
from soma.checkpoint._saved import NestedFilter, Reference, Saved
from soma.core import Filter, has_module
from soma.draw import printable
from soma.errors import CheckpointError

_NAMELESS = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)

Problem = Callable[[str], None]


def named_class(filter: Filter) -> type[Filter]:
    """Return the class that a bundle names for a filter."""
    return filter._saved_as or type(filter)


def arguments_of(filter: Filter) -> tuple[object, ...]:
    """Return positional arguments, named ones and attributes, as data.

    Raises:
        CheckpointError: an argument is code.
    """
    given, arguments = _by_name(filter)
    positional = tuple(_as_data(value, f"argument {n}") for n, value in enumerate(given, 1))
    named = {name: _as_data(value, f"`{name}`") for name, value in arguments.items()}
    return positional, named, _attributes(filter, arguments)


def _by_name(filter: Filter) -> tuple[tuple[object, ...], Mapping[str, object]]:
    """Return the arguments, by name wherever the constructor has names for all of them."""
    given = filter._arguments
    try:
        bound = signature(type(filter)).bind(*given.positional, **given.named)
    except (TypeError, ValueError):
        return given.positional, given.named
    named = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            named |= named.pop(name, {})
        elif name in named and parameter.kind in _NAMELESS:
            return given.positional, given.named
    return (), named


def _attributes(filter: Filter, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return public attributes that are more than an argument of the same name."""
    derived = {
        name
        for base in type(filter).__mro__
        for name, value in vars(base).items()
        if type(value) is cached_property
    }
    if has_module(filter):
        derived.add("training")  # a mode, not a part
    found = {}
    for name, value in vars(filter).items():
        if name.startswith("_") or name in derived:
            continue
        if name in arguments and arguments[name] is value:
            continue
        try:
            stored = _as_data(value, name) if name in arguments else value
            encode(stored)
        except (CheckpointError, Unencodable):
            continue
        found[name] = stored
    return found


def _as_data(value: object, told: str, inside: tuple[int, ...] = ()) -> object:
    """Return a value with marks in the place of filters, classes and functions."""
    if isinstance(value, Filter):
        cls = named_class(value)
        return NestedFilter(
            cls.__module__, cls.__qualname__, cls.class_version, arguments_of(value)
        )
    if isinstance(value, type | FunctionType) and "<" not in value.__qualname__:
        return Reference(value.__module__, value.__qualname__)
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        raise CheckpointError(
            f"{told} is `{getattr(value, '__qualname__', value)}`, and a bundle holds no code. "
            "Pass plain data, such as a name, and choose by it inside the filter; or pass a class "
            "or a function that a module defines at its top."
        )
    torch: Any = loaded("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        raise CheckpointError(
            f"{told} is a module, `{type(value).__name__}`, and a bundle holds no code. Build it "
            "in `build_module` from arguments that are plain data."
        )
    if type(value) not in (list, tuple, dict) or id(value) in inside:
        return value  # the codec says what it thinks of it
    return _mapped(value, lambda part: _as_data(part, told, (*inside, id(value))))


def _mapped(value: Any, change: Callable[[Any], object]) -> Any:
    """Return a container with changed parts; the same one where no part changes."""
    if type(value) is dict:
        changed = {key: change(part) for key, part in value.items()}
        same = all(changed[key] is part for key, part in value.items())
    else:
        changed = type(value)(map(change, value))
        same = all(one is other for one, other in zip(changed, value, strict=True))
    return value if same else changed


class Maker:
    """Makes filters again, of classes that are allowed."""

    def __init__(self, allowed: Allowed, problem: Problem) -> None:
        self.allowed = allowed
        self._problem = problem

    def saved(self, arguments: object) -> Saved:
        """Return stored arguments with filters and classes in the place of marks."""
        match arguments:
            case (tuple(positional), dict(named), dict(attributes)):
                pass
            case _:
                raise ValueError("its arguments are no arguments")
        if not all(type(name) is str for name in (*named, *attributes)):
            raise ValueError("its arguments have names that are no text")
        if any(name.startswith("_") or not name.isidentifier() for name in attributes):
            raise ValueError("its attributes have names that nobody can have given")
        return Saved(self._restored(positional), self._restored(named), self._restored(attributes))

    def migrate(self, cls: type[Filter], saved: Saved, version: int, told: str) -> None:
        """Bring what another version of a class left to what this one needs."""
        migrate = getattr(cls, "migrate", None)
        if version == cls.class_version:
            return
        if version < cls.class_version and callable(migrate):
            migrate(saved, version)
            return
        self._problem(
            f"{told} was saved by version {version} of `{cls.__name__}`, which is at "
            f"{cls.class_version} now"
            + ("" if version > cls.class_version else " and has no `migrate(saved, from_version)`")
        )

    def make(self, cls: type[Filter], saved: Saved) -> Filter:
        """Construct a filter and give it its attributes."""
        filter = cls(*saved.positional, **saved.named)
        vars(filter).update(saved.attributes)
        return filter

    def _restored(self, value: Any) -> Any:
        if type(value) is Reference:
            return self.allowed.reference(value.module, value.name)
        if type(value) is NestedFilter:
            cls = self.allowed.subclass(value.module, value.name, Filter)
            saved = self.saved(value.arguments)
            self.migrate(cls, saved, value.version, f"a `{printable(value.name)}`")
            return self.make(cls, saved)
        if type(value) in (list, tuple, dict):
            return _mapped(value, self._restored)
        return value

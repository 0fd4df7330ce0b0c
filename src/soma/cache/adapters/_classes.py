"""Enum members, named tuples and dataclasses: the classes of users that hold plain data.

A stored form names the class and never imports it: the class has to be in this process
already, under its name, and to look as it did.
"""

import sys
from dataclasses import fields, is_dataclass
from enum import Enum, Flag
from typing import Any

from soma.cache._parts import Parts, PutTogether, Refused, Stored, TakeApart


def find(cls: type) -> TakeApart | None:
    """Return how an instance of an enum, a named tuple or a dataclass is taken apart."""
    if issubclass(cls, Enum):
        return _enum
    if cls.__bases__ == (tuple,) and isinstance(getattr(cls, "_fields", None), tuple):
        return _named_tuple
    if is_dataclass(cls) and cls.__new__ is object.__new__:
        return _dataclass
    return None


def _enum(value: Enum) -> Parts:
    cls = type(value)
    named = cls.__members__.get(value.name or "") is value
    if not named and not isinstance(value, Flag):
        raise Refused(f"this `{cls.__qualname__}` is no member of its own enum")
    return Parts("enum", (value.value,), facts=(*_name(cls), value.name if named else None))


def _build_enum(stored: Stored) -> object:
    module, qualname, name = stored.facts
    (value,) = stored.items
    cls: Any = _known(module, qualname)
    if not issubclass(cls, Enum):
        raise ValueError(f"`{qualname}` is no enum any more")
    if name is None and not (issubclass(cls, Flag) and type(value) is int):
        raise ValueError(f"a member of `{qualname}` without a name")
    member = cls(value) if name is None else cls.__members__[name]
    if type(member.value) is not type(value) or member.value != value:
        raise ValueError(f"`{qualname}.{name}` has another value now")
    return member


def _named_tuple(value: Any) -> Parts:
    cls = type(value)
    return Parts("namedtuple", tuple(value), (*_name(cls), *cls._fields), names=cls._fields)


def _build_named_tuple(stored: Stored) -> object:
    module, qualname, *names = stored.facts
    cls = _known(module, qualname)
    if find(cls) is not _named_tuple or list(getattr(cls, "_fields", ())) != names:
        raise ValueError(f"`{qualname}` has other fields now")
    if len(stored.items) != len(names):
        raise ValueError(f"`{qualname}` lacks items")
    return tuple.__new__(cls, stored.items)


def _dataclass(value: Any) -> Parts:
    cls = type(value)
    names = [field.name for field in fields(cls)]
    more = sorted(vars(value).keys() - set(names)) if hasattr(value, "__dict__") else []
    if more:
        raise Refused(f"this `{cls.__qualname__}` holds {', '.join(more)}, which no field declares")
    items = [getattr(value, name) for name in names]
    return Parts("dataclass", items, (*_name(cls), *names), names=names)


def _build_dataclass(stored: Stored) -> object:
    module, qualname, *names = stored.facts
    cls: Any = _known(module, qualname)
    if find(cls) is not _dataclass or [field.name for field in fields(cls)] != names:
        raise ValueError(f"`{qualname}` has other fields now")
    value = object.__new__(cls)
    for name, item in zip(names, stored.items, strict=True):
        object.__setattr__(value, name, item)
    return value


def _name(cls: type) -> tuple[str, str]:
    """Return the module and name under which a class is found again."""
    try:
        found = _known(cls.__module__, cls.__qualname__)
    except ValueError:
        found = None
    if found is not cls:
        raise Refused(
            f"the class `{cls.__qualname__}` is not found under its name in `{cls.__module__}`; "
            "define it at the top of a module"
        )
    return cls.__module__, cls.__qualname__


def _known(module: object, qualname: object) -> type:
    """Return a class of this process by name. Reading `vars` runs no code of its module."""
    found: object = sys.modules.get(module) if isinstance(module, str) else None
    for part in str(qualname).split("."):
        try:
            found = vars(found).get(part)
        except TypeError:
            found = None
    if not isinstance(found, type):
        raise ValueError(f"no class `{qualname}` of `{module}` is known in this process")
    return found


BUILDERS: dict[str, PutTogether] = {
    "enum": _build_enum,
    "namedtuple": _build_named_tuple,
    "dataclass": _build_dataclass,
}

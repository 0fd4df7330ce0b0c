"""What counts of things that are more than data: filters, descriptors, torch modules, classes.

Each function picks the parts; their digests are taken by those who ask.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum
from functools import cached_property, lru_cache, singledispatchmethod
from types import (
    BuiltinMethodType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, cast

from soma._extras import loaded
from soma.core import Filter, has_module

Parts = list[tuple[str, object]]

_LruWrapper = type(lru_cache(len))

# What only wraps a function, and always the same one.
WRAPPERS = frozenset({classmethod, property, staticmethod, _LruWrapper, MemberDescriptorType})

OWN = "."  # where a module keeps what torch knows nothing of

_DESCRIPTORS = frozenset(
    {
        ClassMethodDescriptorType,
        GetSetDescriptorType,
        MemberDescriptorType,
        MethodDescriptorType,
        WrapperDescriptorType,
    }
)

# What Python notes down in a class, and what follows from the rest.
_NOTES = frozenset(
    {
        "__abstractmethods__",
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__classcell__",
        "__dataclass_params__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__qualname__",
        "__slotnames__",  # put there by the first copy or pickle of an instance
        "__static_attributes__",
        "__type_params__",
        "__weakref__",
        "_abc_impl",
        "_spaces",  # where an attribute may be searched; its value is the filter's own
    }
)
# Made up here, from what a class holds for as long as it is the same.
DERIVED = frozenset({"__members__", "__dataclass_fields__"})
_IN_ENUMS = (FunctionType, staticmethod, classmethod, property)


def attributes_of(filter: Filter) -> tuple[dict[str, object], dict[str, object]]:
    """Return the public attributes of a filter, and the arguments it was made with."""
    cls = type(filter)
    derived, slots = _derived_and_slots(cls)
    attributes = {
        name: value
        for name, value in vars(filter).items()
        if not name.startswith("_") and name not in derived
    }
    for name in slots:
        if hasattr(filter, name):
            attributes[name] = getattr(filter, name)
    if has_module(filter):
        attributes.pop("training", None)  # a mode of running, which is keyed apart
    elif (module := module_parts(filter)) is not None:  # weights of its own, out of sight
        attributes["(module)"] = [part for name, part in module if name != OWN]
    given = filter._arguments
    arguments = dict(given.named)
    names = iter(_positional(cls))
    for number, value in enumerate(given.positional, start=1):
        arguments[next(names, f"argument {number}")] = value
    return attributes, arguments


def _derived_and_slots(cls: type) -> tuple[set[str], list[str]]:
    """Return the names that hold what a `cached_property` found, and the public slots."""
    derived: set[str] = set()
    slots: list[str] = []
    for base in cls.__mro__:
        if base is Filter:
            break
        for name, value in vars(base).items():
            if type(value) is cached_property:
                derived.add(name)
            elif name == "__slots__":
                wanted = (value,) if isinstance(value, str) else tuple(value)
                slots += [slot for slot in wanted if not slot.startswith("_")]
    return derived, slots


def _positional(cls: type) -> tuple[str, ...]:
    """Return the names that a constructor gives to its arguments, in order."""
    code = getattr(cls.__init__, "__code__", None)  # type: ignore[misc]
    return code.co_varnames[1 : code.co_argcount] if code is not None else ()


def wrapped_by(value: Any) -> Parts | None:
    """Return what is inside a method, a property or another thin wrapper."""
    cls = type(value)
    if cls in (staticmethod, classmethod):
        return [("", value.__func__)]
    if isinstance(value, property):
        return [("", value.fget), ("", value.fset), ("", value.fdel)]
    if cls is cached_property:
        return [("", value.func)]
    if cls is singledispatchmethod:
        return [("", value.func), ("", value.dispatcher)]
    if cls is _LruWrapper:
        return [("", value.__wrapped__)]
    if cls is MethodType:
        return [("", value.__func__), (".__self__", value.__self__)]
    if cls in _DESCRIPTORS:
        return [("", value.__name__), ("", value.__objclass__)]
    if cls in (BuiltinMethodType, MethodWrapperType) and value.__self__ is not None:
        return [("", value.__name__), (".__self__", value.__self__)]
    if cls is MappingProxyType:
        return [("", dict(value))]
    return None


def module_parts(value: Any) -> Parts | None:
    """Return what counts of a torch module: weights, parts, mode, hooks, own attributes."""
    torch = loaded("torch")
    if torch is None or not isinstance(value, torch.nn.Module):
        return None
    usual = vars(torch.nn.Module())
    hooks = [
        (name, list(found.values()))
        for name, found in vars(value).items()
        if name in usual and name.endswith("_hooks") and found
    ]
    own = {name: found for name, found in vars(value).items() if name not in usual}
    weights = {**value._parameters, **value._buffers}
    return [
        (".training", value.training),
        ("", weights),
        ("", dict(value._modules)),
        ("", hooks),
        (OWN, own),
    ]


def class_parts(cls: type, attributes: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Return what counts of the attributes that a class itself has, sorted by name."""
    if issubclass(cls, Enum):
        yield "__members__", [(name, each.value) for name, each in cls.__members__.items()]
        attributes = {
            name: value for name, value in attributes.items() if isinstance(value, _IN_ENUMS)
        }
    for name, value in sorted(attributes.items()):
        if name == "__dataclass_fields__":
            yield name, [tuple(_field(field)) for field in fields(cast("Any", cls))]
        elif name not in _NOTES:
            yield name, value


def _field(field: Any) -> Iterator[object]:
    yield from (field.name, field.init, field.repr, field.hash, field.compare, field.kw_only)
    yield from (field.default, field.default_factory, dict(field.metadata))

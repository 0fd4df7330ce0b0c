"""Makes a filter again, from the arguments it was constructed with."""

from collections.abc import Mapping
from copy import deepcopy
from inspect import Parameter, signature
from typing import TypeVar

from soma.core._filter import Filter
from soma.core._space import searched_values, spaces_of

F = TypeVar("F", bound=Filter)


def remade(filter: F, changes: Mapping[str, object] | None = None) -> F:
    """Return a new filter of the same class and arguments, which has learned nothing.

    Arguments are copied where they can be. Attributes that were set after construction are lost,
    except searched ones, which count as arguments.

    Args:
        changes: new values of arguments or searched attributes, by name.
    """
    arguments, cls = filter._arguments, type(filter)
    positional = [_copied(value) for value in arguments.positional]
    named = {name: _copied(value) for name, value in arguments.named.items()}
    spaces = spaces_of(cls)
    found = {name: v for name, v in _searched(filter).items() if v != spaces[name].default}
    changes = {**found, **(changes or {})}
    if not changes:
        return cls(*positional, **named)
    given = signature(cls).bind_partial(*positional, **named)
    parameters = given.signature.parameters
    rest = next((one for one in parameters.values() if one.kind is Parameter.VAR_KEYWORD), None)
    before = {}
    for name, value in changes.items():
        known = parameters.get(name)
        if known is not None and known.kind is not Parameter.VAR_KEYWORD:
            given.arguments[name] = value
        elif rest is not None:
            given.arguments[rest.name] = {**given.arguments.get(rest.name, {}), name: value}
        else:
            before[name] = value
    # What the constructor has no argument for is there before it runs, as the default was.
    made = cls.__new__(cls, *given.args, **given.kwargs)
    for name, value in before.items():
        object.__setattr__(made, name, value)
    made.__init__(*given.args, **given.kwargs)  # type: ignore[misc]
    return made


def parameters_of(filter: Filter) -> dict[str, object]:
    """Return what `remade` can change: arguments, and the defaults of those that were not given.

    Where keywords become attributes, an attribute of the class is a default.
    """
    arguments = filter._arguments
    given = signature(type(filter)).bind_partial(*arguments.positional, **arguments.named)
    given.apply_defaults()
    found: dict[str, object] = {}
    for name, parameter in given.signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            found |= {**_class_attributes(type(filter)), **given.arguments[name]}
        elif parameter.kind is not Parameter.VAR_POSITIONAL and name in given.arguments:
            found[name] = given.arguments[name]
    return {**found, **_searched(filter)}


def given_to(filter: Filter) -> dict[str, object]:
    """Return the arguments that a filter was constructed with, those that have a name."""
    arguments = filter._arguments
    given = signature(type(filter)).bind_partial(*arguments.positional, **arguments.named)
    named = dict(given.arguments)
    for name, parameter in given.signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            named |= named.pop(name, {})
        elif parameter.kind is Parameter.VAR_POSITIONAL:
            named.pop(name, None)
    return named


def _searched(filter: Filter) -> dict[str, object]:
    """Return the values of searched attributes that were not given as arguments."""
    values = searched_values(filter)
    given = given_to(filter) if values else {}
    return {name: value for name, value in values.items() if name not in given}


def _class_attributes(cls: type[Filter]) -> dict[str, object]:
    own = [base for base in reversed(cls.__mro__) if not base.__module__.startswith("soma.")]
    return {
        name: value
        for base in own
        if issubclass(base, Filter)
        for name, value in vars(base).items()
        if not name.startswith("_")
        and not hasattr(Filter, name)
        and not callable(value)
        and not hasattr(value, "__get__")
    }


def _copied(value: object) -> object:
    try:
        return deepcopy(value)
    except Exception:  # a connection, a lock: there is one, and all share it
        return value

"""A filter made once more, from the arguments it was constructed with."""

from collections.abc import Mapping
from copy import deepcopy
from inspect import Parameter, signature
from typing import TypeVar

from soma.core._filter import Filter

F = TypeVar("F", bound=Filter)


def remade(filter: F, changes: Mapping[str, object] | None = None) -> F:
    """Return a new filter of the same class and arguments, which has learned nothing.

    Arguments are copied, as far as they can be. Attributes that were set after construction are
    those of the class again.

    Args:
        changes: arguments by name that are other ones.
    """
    arguments = filter._arguments
    positional = [_copied(value) for value in arguments.positional]
    named = {name: _copied(value) for name, value in arguments.named.items()}
    if not changes:
        return type(filter)(*positional, **named)
    given = signature(type(filter)).bind_partial(*positional, **named)
    parameters = given.signature.parameters
    for name, value in changes.items():
        known = parameters.get(name)
        if known is not None and known.kind is not Parameter.VAR_KEYWORD:
            given.arguments[name] = value
        else:
            rest = next(one for one in parameters.values() if one.kind is Parameter.VAR_KEYWORD)
            given.arguments[rest.name] = {**given.arguments.get(rest.name, {}), name: value}
    return type(filter)(*given.args, **given.kwargs)


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
    return found


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

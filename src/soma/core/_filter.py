"""The unit of work: a `Filter` learns a state from data and maps data with it.

A filter never knows its neighbours; `_expression.py` connects filters, and the engine
runs them. Filters with a torch module inside are in `soma.training`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from inspect import Parameter, getattr_static, isfunction, signature
from reprlib import recursive_repr
from types import MappingProxyType
from typing import Any, ClassVar, Self

from soma.core._expression import Expression, Placed
from soma.core._space import Space, searched_values, spaces_of
from soma.core._space_declared import Declared
from soma.draw import printable
from soma.errors import did_you_mean, listing


class FilterKind(StrEnum):
    """What a filter does with data before it can run."""

    Stateless = "stateless"  # nothing to learn
    Trainable = "trainable"  # learns a state in `fit`, or weights in training
    Opaque = "opaque"  # a box that nobody looks into: SQL, a service, a tree


class StreamMode(StrEnum):
    """How a filter works on data that comes in chunks."""

    Fixed = "fixed"  # chunk by chunk
    Evolving = "evolving"  # its state moves on with each chunk
    Barrier = "barrier"  # needs everything at once


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterMeta:
    """What the compiler needs to know of a filter."""

    kind: FilterKind
    differentiable: bool
    cacheable: bool
    stream_mode: StreamMode


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a filter was constructed with, as it was written."""

    positional: tuple[object, ...]
    named: Mapping[str, object]


class Filter(Expression):
    """One step of a graph.

    Override `forward`, and `fit` if there is something to learn:

    >>> class Center(Filter):
    ...     def fit(self, x, y=None):
    ...         return sum(x) / len(x)
    ...     def forward(self, x, state):
    ...         return [value - state for value in x]
    >>> Center().meta().kind
    <FilterKind.Trainable: 'trainable'>

    Keywords given to the constructor become attributes, so a filter with parameters
    needs no `__init__` of its own:

    >>> Center(unit="cm").unit
    'cm'

    Class attributes say what may be assumed of it: `_kind` (`"stateless"`, `"trainable"`, or
    `"opaque"` for a box that nobody looks into; by default from whether it has a `fit`),
    `_differentiable` (gradients pass `forward`), `_deterministic` (equal inputs give equal
    outputs), `_cacheable`, and `_stream_mode` for data that comes in chunks: `"fixed"` works
    chunk by chunk, `"barrier"` needs all rows at once, and `"evolving"` moves its state on with
    each chunk by a method `update(self, state, chunk)` that returns the next state; the first
    one gets what `fit` learned, or None.
    """

    _kind: ClassVar[str | None] = None
    _differentiable: ClassVar[bool] = False
    _cacheable: ClassVar[bool] = True
    _deterministic: ClassVar[bool] = True
    _stream_mode: ClassVar[str] = "fixed"
    _cache_version: ClassVar[str | None] = None
    _audit_scope: ClassVar[object] = None
    class_version: ClassVar[int] = 1

    # The class that a bundle names, for classes that are made at run time.
    _saved_as: ClassVar["type[Filter] | None"] = None

    # Set by the nodes of flows, which orchestrate and compute nothing.
    _orchestrates: ClassVar[bool] = False

    # What its node is called, where nobody gives an id and the class says too little.
    _called: str | None = None

    # Set by the filters whose state is a torch module; the rooms below training ask no more.
    _has_module: ClassVar[bool] = False

    # What `soma.search` in the class body declared, by attribute.
    _spaces: ClassVar[Mapping[str, Space]] = MappingProxyType({})

    _arguments: Arguments

    def __new__(cls, /, *args: object, **kwargs: object) -> Self:
        # Recorded here, so that a subclass that never calls `super().__init__` has them too;
        # and past `__setattr__`, so that a frozen dataclass may be a filter.
        self = super().__new__(cls)
        object.__setattr__(self, "_arguments", Arguments(args, kwargs))
        if any(isinstance(value, Declared) for value in (*args, *kwargs.values())):
            raise TypeError(
                f"`{cls.__name__}` got `search(...)` as an argument. Declare it in the body of the "
                "class, and give a value here, or nothing for the default."
            )
        for name, space in spaces_of(cls).items():  # on the filter, so that it is saved with it
            object.__setattr__(self, name, space.default)
        return self

    def __init__(self, /, *positional: object, **attributes: object) -> None:
        if positional:
            name = type(self).__name__
            raise TypeError(
                f"`{name}` got {len(positional)} argument{'s' if len(positional) > 1 else ''} "
                "without a name; keywords become attributes, so write "
                f"`{name}(name=value)`, or define `__init__`."
            )
        for name, value in attributes.items():
            if isfunction(getattr_static(type(self), name, None)):
                raise TypeError(
                    f"`{type(self).__name__}` got a parameter named `{name}`, which is one of its "
                    "methods. Choose another name."
                )
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Reached only for what is not there; in a half-made copy `_arguments` is not either.
        if name.startswith("__") or name == "_arguments":
            raise AttributeError(name)
        if hasattr(super(), "__getattr__"):  # a class that is a torch module too
            return super().__getattr__(name)  # type: ignore[misc]
        if hasattr(type(self), name):  # a property that failed: its own error says more
            return super().__getattribute__(name)
        given = self._arguments.named
        raise AttributeError(
            f"`{type(self).__name__}` has no attribute `{name}`; it was constructed with "
            f"{listing(given) or 'no keywords'}.{did_you_mean(name, given)} Keywords become "
            f"attributes: `{type(self).__name__}({name}=...)`."
        )

    def at(self, target: str) -> Placed:
        """Return this filter, to be run on the worker named `target`.

        Raises:
            InvalidTarget: no worker can have this name.
        """
        return Placed(self, target)

    def fit(self, x: object, y: object = None) -> object:
        """Return the state that `forward` will get. The default learns nothing.

        Args:
            x: what the predecessors give; `{predecessor_id: value}` where several do.
            y: the targets that `Graph.fit` got, the same for every node.
        """
        return None

    def forward(self, x: object, state: object) -> object:
        """Return the output for `x`, without changing `x`.

        Args:
            x: what the predecessors give; `{predecessor_id: value}` where several do.
            state: what `fit` returned, or None where there was nothing to learn.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` does not define `forward(self, x, state)`."
        )

    def meta(self) -> FilterMeta:
        """Return the facts that the compiler judges by."""
        return FilterMeta(
            kind=self._derived_kind(),
            differentiable=bool(self._differentiable),
            cacheable=bool(self._cacheable),
            stream_mode=StreamMode(self._stream_mode),
        )

    def _derived_kind(self) -> FilterKind:
        if self._kind is not None:
            return FilterKind(self._kind)
        learns = type(self).fit is not Filter.fit
        return FilterKind.Trainable if learns else FilterKind.Stateless

    @recursive_repr("…")
    def __repr__(self) -> str:
        """Show the class with the arguments it was constructed with."""
        try:
            inside = ", ".join(self._written_arguments())
        except Exception:  # an argument whose own `repr` fails must not hide the filter
            inside = "…"
        return f"{type(self).__name__}({inside})"

    def _description(self) -> str:
        """Return what messages call this filter, safe to print."""
        return printable(type(self).__name__)

    def _written_arguments(self) -> Iterator[str]:
        given = signature(type(self)).bind(*self._arguments.positional, **self._arguments.named)
        kinds = {given.signature.parameters[name].kind: name for name in given.arguments}
        named = dict(given.arguments)
        named |= named.pop(kinds.get(Parameter.VAR_KEYWORD, ""), {})
        if kinds.keys() & {Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL}:
            yield from map(repr, given.args)  # these cannot be written with their names
            named = given.kwargs
        named = {**named, **{n: v for n, v in searched_values(self).items() if n not in named}}
        yield from (f"{name}={value!r}" for name, value in named.items())


def needs_fit(filter: Filter) -> bool:
    """Whether `filter` has to learn a state before its `forward` can run."""
    return type(filter).fit is not Filter.fit


def has_module(filter: Filter) -> bool:
    """Whether `filter` holds a torch module, which is trained rather than fitted."""
    return filter._has_module

"""`soma.search`: declares, in the body of a class, the values among which to search an attribute.

The attribute itself is a plain value, the default. `_search.py` collects the spaces of a graph.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from decimal import Decimal
from inspect import get_annotations
from math import isfinite, isnan, sqrt
from numbers import Integral, Real
from types import FunctionType
from typing import Any, Literal, TypeVar, overload

from soma.core._space import Choice, Range, Space
from soma.errors import InvalidInput

T = TypeVar("T")
Scale = Literal["linear", "log"]

_METHODS = (FunctionType, classmethod, staticmethod)
_PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Declared:
    """What `search` puts in a class body; once the class is made, the default takes its place."""

    space: Space
    float_space: Range | None = None  # of whole bounds, for an attribute annotated as a float

    def __set_name__(self, owner: Any, name: str) -> None:
        if name.startswith("_"):
            raise InvalidInput(
                f"`{name}` of `{owner.__name__}` is private, and only public attributes count in "
                f"keys of the cache. Call it `{name.lstrip('_') or 'value'}`."
            )
        before = [vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)]
        if before and isinstance(before[0], _METHODS):
            raise InvalidInput(
                f"`{name}` of `{owner.__name__}` is a method of the class that it is made from. "
                "Choose another name."
            )
        space = self.space
        if self.float_space is not None and _annotation(owner, name) in (float, "float"):
            space = self.float_space
        setattr(owner, name, space.default)
        owner._spaces = {**vars(owner).get("_spaces", {}), name: space}


@overload
def search(
    low: int, high: int, *, step: int | None = None, scale: Scale = ..., default: int = ...
) -> int: ...


@overload
def search(
    low: float, high: float, *, step: float | None = None, scale: Scale = ..., default: float = ...
) -> float: ...


@overload
def search(*, choices: Sequence[T], default: T = ...) -> T: ...


def search(
    low: Any = None,
    high: Any = None,
    *,
    step: Any = None,
    scale: Scale = "linear",
    choices: Any = None,
    default: Any = MISSING,
) -> Any:
    """Declare in which values an attribute of a filter may be searched.

    It stands in the body of the class. The attribute is a plain value, the default, until a filter
    is constructed with another one.

    >>> import soma
    >>> class Dense(soma.Filter):
    ...     width: int = soma.search(16, 256, step=16)
    ...     rate: float = soma.search(1e-4, 1e-2, scale="log")
    ...     activation: str = soma.search(choices=["relu", "gelu"])
    >>> Dense(), Dense(width=32).width
    (Dense(width=128, rate=0.001, activation='relu'), 32)

    Args:
        low: the least value.
        high: the greatest value, included. Two integers search integers, unless the attribute is
            annotated as a float.
        step: the distance between values; by default any number between the bounds.
        scale: `"log"` for values that differ by factors.
        choices: in place of bounds, plain values: texts, numbers, True, False, None.
        default: by default the first choice, or the middle of the range: the geometric one on a
            log scale, and of two middle steps the lower one.

    Raises:
        InvalidInput: there is no such space.
    """
    if choices is not None:
        if low is not None or high is not None or step is not None or scale != "linear":
            raise InvalidInput("`search` got `choices` and bounds; one of them is wanted.")
        return Declared(_choice(choices, default))
    if low is None or high is None:
        raise InvalidInput(
            "`search` got no space; bounds as in `search(1e-4, 1e-1)` are wanted, or "
            '`search(choices=["relu", "gelu"])`.'
        )
    given = {"low": low, "high": high} | ({} if step is None else {"step": step})
    for name, value in given.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not _is_finite(value):
            raise InvalidInput(f"`{name}` of `search` is {value!r}; a finite number is wanted.")
    if scale not in ("linear", "log"):
        raise InvalidInput(f'`scale` of `search` is {scale!r}; "linear" or "log" is wanted.')
    numbers = [*given.values(), *(() if default is MISSING else (default,))]
    if not all(isinstance(value, Integral) for value in numbers):
        return Declared(_range(float, given, scale, default))
    return Declared(_range(int, given, scale, default), _range(float, given, scale, default))


def _choice(choices: Any, default: Any) -> Choice:
    if isinstance(choices, str) or not isinstance(choices, Sequence) or not len(choices):
        raise InvalidInput(f"`choices` of `search` is {choices!r}; a list of values is wanted.")
    for number, one in enumerate(choices):
        if not isinstance(one, _PLAIN) or (isinstance(one, float) and isnan(one)):
            raise InvalidInput(
                f"`choices` of `search` holds {one!r}; texts, numbers, True, False and None are "
                "wanted, since a study keeps them as text. Give a name, and look it up in the "
                "filter."
            )
        if one in choices[:number]:
            raise InvalidInput(
                f"`choices` of `search` holds {one!r} twice, or a value equal to it."
            )
    space = Choice(choices=tuple(choices), default=choices[0])
    return space if default is MISSING else replace(space, default=_default(space, default))


def _range(
    kind: type[int] | type[float], given: Mapping[str, Any], scale: Scale, default: Any
) -> Range:
    low, high = kind(given["low"]), kind(given["high"])
    step = kind(given["step"]) if "step" in given else None
    log = scale == "log"
    if low > high:
        raise InvalidInput(f"`low` of `search` is {low!r}, above `high`, {high!r}.")
    if log and low <= 0:
        raise InvalidInput(
            f"`low` of `search` is {low!r}; on a log scale a number above 0 is wanted."
        )
    if log and step is not None:
        raise InvalidInput(
            '`search` got a `step` and `scale="log"`; steps are of a linear scale. Leave one.'
        )
    if step is not None and step <= 0:
        raise InvalidInput(f"`step` of `search` is {step!r}; a number above 0 is wanted.")
    last = high if step is None else kind(_value_at(low, step, _step_count(low, high, step)))
    if last != high:
        raise InvalidInput(
            f"`high` of `search` is {high!r}, which steps of {step!r} from {low!r} do not reach; "
            f"the last one below it is {last!r}."
        )
    space = Range(low=low, high=high, step=step, log=log, default=low)
    chosen = _middle(space, kind) if default is MISSING else _default(space, default)
    return replace(space, default=chosen)


def _default(space: Space, default: object) -> Any:
    try:
        return space.checked(default)
    except InvalidInput as error:
        raise InvalidInput(f"`default` of `search` is outside of its space: {error}.") from None


def _middle(space: Range, kind: Callable[[Any], float]) -> float:
    low, high = space.low, space.high
    if space.log:
        middle = sqrt(low) * sqrt(high)
        middle = round(middle) if space.is_whole else middle
    elif space.step is not None or space.is_whole:
        step = space.step or 1
        middle = _value_at(low, step, _step_count(low, high, step) // 2)
    else:
        middle = low / 2 + high / 2
    return min(max(kind(middle), low), high)


def _step_count(low: float, high: float, step: float) -> int:
    """Return how many whole steps fit, counted in decimals, since 0.1 is no exact float."""
    return int((Decimal(str(high)) - Decimal(str(low))) // Decimal(str(step)))


def _value_at(low: float, step: float, number: int) -> Any:
    return Decimal(str(low)) + number * Decimal(str(step))


def _is_finite(value: Any) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # a whole number that no float comes near
        return False


def _annotation(owner: type, name: str) -> object:
    try:
        return get_annotations(owner).get(name)
    except NameError:  # another attribute's annotation names a class that is not defined yet
        return None

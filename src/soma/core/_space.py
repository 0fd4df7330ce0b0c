"""`Range` and `Choice`: the values among which an attribute may be searched.

`soma.search`, in `_space_declared.py`, makes them in the body of a class.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from soma.errors import InvalidInput

_OFF_GRID = 1e-6  # in steps: the error that adding up floats may leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Numbers from `low` to `high`, both included; whole ones if the bounds are integers."""

    low: float
    high: float
    step: float | None  # None: every number
    log: bool
    default: float

    @property
    def is_whole(self) -> bool:
        """Whether its values are integers."""
        return isinstance(self.low, int)

    def checked(self, value: Any) -> float:
        """Return a value of the space as a plain number.

        Raises:
            InvalidInput: it is outside.
        """
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high:
            number = int(value) if self.is_whole else float(value)
            if self._is_on_grid(number) and (number == value or not self.is_whole):
                return number
        raise InvalidInput(f"it is {value!r}; {self} is wanted")

    def _is_on_grid(self, number: float) -> bool:
        steps = 0.0 if self.step is None else (number - self.low) / self.step
        return abs(steps - round(steps)) < _OFF_GRID

    def __str__(self) -> str:
        step = f" in steps of {self.step!r}" if self.step is not None and self.step != 1 else ""
        kind = "a whole number" if self.is_whole else "a number"
        scale = ", on a log scale" if self.log else ""
        return f"{kind} from {self.low!r} to {self.high!r}{step}{scale}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of some plain values."""

    choices: tuple[object, ...]
    default: object

    def checked(self, value: object) -> object:
        """Return the choice that a value is.

        Raises:
            InvalidInput: it is none of them.
        """
        for one in self.choices:
            if isinstance(value, bool) == isinstance(one, bool) and _is_equal(one, value):
                return one
        raise InvalidInput(f"it is {value!r}; {self} is wanted")

    def __str__(self) -> str:
        if len(self.choices) == 1:
            return repr(self.choices[0])
        *most, last = map(repr, self.choices)
        return f"{', '.join(most)} or {last}"


def _is_equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except Exception:  # an array, which answers element by element
        return False


Space = Range | Choice


def spaces_of(cls: type) -> dict[str, Space]:
    """Return the spaces of a class; an attribute that a subclass sets to a value has none."""
    found: dict[str, Space] = {}
    for base in reversed(cls.__mro__):
        own = vars(base)
        if found:
            found = {name: space for name, space in found.items() if name not in own}
        found |= own.get("_spaces", {})
    return found


def searched_values(filter: object) -> dict[str, object]:
    """Return the searched attributes of a filter with the values they have."""
    return {name: getattr(filter, name) for name in spaces_of(type(filter))}

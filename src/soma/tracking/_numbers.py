"""Numbers between Python and strict JSON, which knows neither NaN nor infinity.

This is the one place where those become the strings `"NaN"`, `"Infinity"`, `"-Infinity"`, and
floats again.
"""

from math import inf, isfinite, nan
from operator import index
from reprlib import repr as shortly
from typing import Any

from soma.errors import InvalidInput

_BACK = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}


def number_out(value: float) -> float | str:
    """Return what JSON keeps of a number."""
    if isfinite(value):
        return value
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def number_in(value: float | str) -> float:
    """Return the number that `number_out` was given.

    Raises:
        ValueError: a string that stands for no number.
    """
    if isinstance(value, str):
        if value not in _BACK:
            raise ValueError(f"{value[:80]!r} stands for no number.")
        return _BACK[value]
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        raise ValueError("a number that is too large.") from None


def numbers_back(value: Any) -> Any:
    """Return a value of JSON with the three strings as floats again, at any depth."""
    if isinstance(value, str):
        return _BACK.get(value, value)
    if isinstance(value, list):
        return [numbers_back(one) for one in value]
    if isinstance(value, dict):
        return {name: numbers_back(one) for name, one in value.items()}
    return value


def as_number(value: object, name: str) -> float:
    """Return a number, or an array or tensor without axes, as a float.

    Raises:
        InvalidInput: it is none.
    """
    if type(value) is float:
        return value
    try:
        if isinstance(value, str | bytes | bytearray):
            raise TypeError("a text")
        detach = getattr(value, "detach", None)  # a loss still hangs on its history
        return float(value if detach is None else detach())  # type: ignore[arg-type]
    except Exception as error:
        shape = getattr(value, "shape", None)
        told = type(value).__name__ + (f" of shape {tuple(shape)}" if shape else "")
        raise InvalidInput(
            f"`{name}` was logged as a {told}; one number is wanted. Log `value.mean()`, or each "
            "number under a name of its own."
        ) from error


def as_step(value: object, name: str) -> int:
    """Return a whole number that files can hold.

    Raises:
        InvalidInput: it is none.
    """
    if type(value) is not int:
        try:
            value = index(value)  # type: ignore[arg-type]
        except TypeError as error:
            raise InvalidInput(
                f"`{name}` was logged at step {shortly(value)}; a whole number is wanted, or none "
                "at all: points are counted then."
            ) from error
    if not -(2**63) <= value < 2**63:
        bits = value.bit_length()
        raise InvalidInput(f"`{name}` was logged at step of {bits} bits; 64 bits are the most.")
    return value

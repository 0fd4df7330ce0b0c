"""Reads JSON of unknown origin: each step checks what came and says what was wanted."""

import reprlib
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


def require(holds: bool, where: str, found: object, wanted: str) -> None:
    """Refuse what was found at `where` unless it `holds`."""
    if not holds:
        raise ValueError(f"this is no plan: {where} is {reprlib.repr(found)}; {wanted} is wanted.")


def fields(value: object, where: str, *names: str) -> list[object]:
    """Return the values of an object that has exactly these names, in their order."""
    wanted = f"an object with {', '.join(names)} and nothing else"
    require(isinstance(value, dict) and value.keys() == set(names), where, value, wanted)
    data = cast(dict[str, object], value)
    return [data[name] for name in names]


def many(value: object, where: str, one: Callable[[object, str], T]) -> tuple[T, ...]:
    """Return the items of a list, each read by `one`."""
    require(isinstance(value, list), where, value, "a list")
    return tuple(
        one(item, f"{where}[{index}]") for index, item in enumerate(cast(list[object], value))
    )


def text(value: object, where: str) -> str:
    """Return a string."""
    require(isinstance(value, str), where, value, "a string")
    return cast(str, value)


def text_or_none(value: object, where: str) -> str | None:
    """Return a string, or None for null."""
    return None if value is None else text(value, where)


def truth(value: object, where: str) -> bool:
    """Return true or false; a number is neither."""
    require(isinstance(value, bool), where, value, "true or false")
    return cast(bool, value)


def count(value: object, where: str) -> int:
    """Return a whole number from 0 up."""
    require(type(value) is int and value >= 0, where, value, "a whole number from 0 up")
    return cast(int, value)

"""Turns what a user hands over into data that strict JSON holds, whatever it is."""

from collections.abc import Mapping
from typing import Any

from soma.draw import printable, shortened
from soma.tracking._numbers import number_out

_MOST_TEXT = 200  # columns of a `repr`
_MOST_PARTS = 1000
_MOST_DEPTH = 8


def plain(value: object, depth: int = _MOST_DEPTH) -> Any:
    """Return `value` as JSON data: as it is where JSON knows it, else its shortened `repr`."""
    try:
        return _plain(value, depth)
    except Exception:  # an object that fails when it is looked at
        return shown(value)


def shown(value: object) -> str:
    """Return the `repr` of anything, shortened and safe to print."""
    try:
        # Cut before it is measured: a `repr` may have millions of characters.
        text = printable(repr(value)[: 50 * _MOST_TEXT])
    except Exception:
        text = f"<{type(value).__name__}>"
    return shortened(text, _MOST_TEXT)


def text_out(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: object, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_out(str.__str__(value))
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else shown(value)
    if isinstance(value, float):
        return number_out(float(value))
    if isinstance(value, Mapping) and depth:
        pairs = [*value.items()][:_MOST_PARTS]
        return {_name(name): plain(one, depth - 1) for name, one in pairs}
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return [plain(one, depth - 1) for one in [*value][:_MOST_PARTS]]
    if getattr(value, "shape", None) == ():  # a number of NumPy or torch
        return _plain(value.item(), 0)  # type: ignore[attr-defined]
    return shown(value)


def _name(name: object) -> str:
    return text_out(name) if isinstance(name, str) else shown(name)

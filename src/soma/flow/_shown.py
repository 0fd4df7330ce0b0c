"""Puts the result of a tool into words: what a model reads of a value."""

import json
import math
from typing import Any

import msgspec

_MOST_TEXT = 20_000  # characters that a model gets of one result
_MOST_NUMBERS = 1_000  # of an array that is written out
_HEAD = 10  # of one that is not


def shown(value: object) -> str:
    """Return a text as it is, and other values as JSON, or as Python shows them.

    Arrays and tensors of up to 1,000 numbers are lists, of larger ones shape, type and the first
    numbers are told. Numbers that are none are `NaN`, `Infinity` and `-Infinity`. Texts over 20,000
    characters are cut, and say so.
    """
    return _cut(as_text(value), _MOST_TEXT)


def as_text(value: object) -> str:
    """Return a text as it is and whole, and other values as JSON, or as Python shows them."""
    return value if isinstance(value, str) else _json(value)


def failure(error: Exception) -> str:
    """Return the class of an exception and what it says, in up to 2,000 characters."""
    return _cut(f"{type(error).__name__}: {error}", 2_000)


def _json(value: object) -> str:
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
        return json.dumps(plain, ensure_ascii=False)
    except Exception:  # the call was made, so whatever its value does, it has not failed
        return repr(value)


def _plain(value: Any) -> object:
    """Return what stands for a value that JSON does not know."""
    if hasattr(value, "tolist") and hasattr(value, "shape") and hasattr(value, "dtype"):
        if math.prod(value.shape) <= _MOST_NUMBERS:
            return value.tolist()
        first = value.reshape(-1)[:_HEAD].tolist()
        head = ", ".join(f"{one:.4g}" if isinstance(one, float) else str(one) for one in first)
        return f"array of shape {tuple(value.shape)}, {value.dtype}: {head}, …"
    return str(value)


def _cut(text: str, most: int) -> str:
    text = text.encode("utf-8", "replace").decode()  # no half characters: they cannot be sent
    return text if len(text) <= most else f"{text[:most]}… ({most:,} of {len(text):,} characters)"

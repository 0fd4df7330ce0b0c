"""Puts the result of a tool into words: what a model reads of a value."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

_MOST_TEXT = 20_000  # characters that a model gets of one result
_MOST_NUMBERS = 1_000  # of an array that is written out
_HEAD = 10  # of one that is not
_MOST_TOGETHER = 400_000  # bytes of all results of one turn


def shown(value: object, hidden: Callable[[str], str] = str) -> str:
    """Return a text as it is, and other values as JSON, or as Python shows them.

    Arrays and tensors of up to 1,000 numbers are lists, of larger ones shape, type and the first
    numbers are told. Numbers that are none are `NaN`, `Infinity` and `-Infinity`. Texts over 20,000
    characters are cut, and say so.

    Args:
        hidden: takes out what nobody may see, before half of it would be cut off.
    """
    return _cut(hidden(as_text(value)), _MOST_TEXT)


def together(texts: Sequence[str]) -> list[str]:
    """Return results as a model can hear them at once: long ones are cut where all are too much."""
    sizes = [len(msgspec.json.encode(text)) for text in texts]
    if sum(sizes) <= _MOST_TOGETHER:
        return [*texts]
    share = _MOST_TOGETHER // len(texts)
    # No character takes more than six bytes, as half of a pair written with a backslash.
    return [
        text if size <= share else _cut(text, share // 6)
        for text, size in zip(texts, sizes, strict=True)
    ]


def as_text(value: object) -> str:
    """Return a text as it is and whole, and other values as JSON, or as Python shows them."""
    return value if isinstance(value, str) else _json(value)


def failure(error: Exception, hidden: Callable[[str], str] = str) -> str:
    """Return the class of an exception and what it says, in up to 2,000 characters."""
    try:
        said = str(error)
    except Exception:  # it is the tool's own, and may fail itself
        said = "it cannot say what is wrong"
    return _cut(hidden(f"{type(error).__name__}: {said}"), 2_000)


def sendable(text: str) -> str:
    """Return a text without half characters, which cannot be sent, nor kept."""
    return text.encode("utf-8", "replace").decode()


def _json(value: object) -> str:
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain)
        return json.dumps(plain, ensure_ascii=False)
    except Exception:  # the call was made, so whatever its value does, it has not failed
        return _repr(value)


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


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
    text = sendable(text)
    return text if len(text) <= most else f"{text[:most]}… ({most:,} of {len(text):,} characters)"

"""Turns what a user hands over into data that strict JSON holds, whatever it is."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from soma.draw import printable, shortened
from soma.errors import InvalidInput
from soma.tracking._numbers import number_out

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
_MOST_SHOWN = 200  # columns of a `repr`
_MOST_TEXT = 10_000  # characters of a text
_MOST_PARTS = 1000  # of a container, and tags
_MOST_CHARACTERS = 1_000_000  # of all parts together, each counted as one at least
_MOST_DEPTH = 8


def plain(value: object) -> Any:
    """Return `value` as JSON data: as it is where JSON knows it, else its shortened `repr`.

    Of what is too large for a file that readers open, the rest stands as `…`.
    """
    return _Writing().plain(value, _MOST_DEPTH)


def plain_tags(tags: Iterable[object]) -> tuple[str, ...]:
    """Return tags as texts; one string is one tag.

    Raises:
        InvalidInput: they are no collection.
    """
    try:
        given = [tags] if isinstance(tags, str) else [*islice(tags, _MOST_PARTS)]
    except TypeError as error:
        raise InvalidInput(
            f"the `tags` of a run are {shown(tags)}; a list of strings is wanted."
        ) from error
    return tuple(_cut(one if isinstance(one, str) else _str(one), _MOST_PARTS) for one in given)


def shown(value: object, hidden: Callable[[str], str] = str) -> str:
    """Return the `repr` of anything, shortened, safe to print, without addresses in memory.

    Args:
        hidden: takes out what nobody may see, before half of it would be cut off.
    """
    try:
        # Cut before it is measured: a `repr` may have millions of characters.
        text = _ADDRESS.sub(">", printable(hidden(repr(value)[: 50 * _MOST_SHOWN])))
    except Exception:
        text = f"<{type(value).__name__}>"
    return shortened(text, _MOST_SHOWN)


def text_out(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return str.__str__(text).encode("utf-8", "replace").decode("utf-8")


class _Writing:
    """One value on its way, with the room that is left for it: it may hold itself many times."""

    def __init__(self) -> None:
        self.room = _MOST_CHARACTERS

    def plain(self, value: object, depth: int) -> Any:
        try:
            found = self._plain(value, depth)
        except Exception:  # an object that fails when it is looked at
            found = shown(value)
        self.room -= len(found) if isinstance(found, str) else 1
        return found if self.room >= 0 else "…"

    def _plain(self, value: object, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _cut(value, _MOST_TEXT)
        if isinstance(value, int):
            return int(value) if -(2**63) <= value < 2**63 else shown(value)
        if isinstance(value, float):
            return number_out(float(value))
        if isinstance(value, Mapping) and depth:
            pairs = islice(value.items(), _MOST_PARTS)
            return {self._name(name): self.plain(one, depth - 1) for name, one in self._fit(pairs)}
        if isinstance(value, list | tuple | set | frozenset) and depth:
            return [self.plain(one, depth - 1) for one in self._fit(islice(value, _MOST_PARTS))]
        if getattr(value, "shape", None) == ():  # a number of NumPy or torch
            return self._plain(value.item(), 0)  # type: ignore[attr-defined]
        return shown(value)

    def _fit(self, parts: Iterable[Any]) -> Iterable[Any]:
        for part in parts:
            if self.room < 0:
                return
            yield part

    def _name(self, name: object) -> str:
        text = _cut(name, _MOST_PARTS) if isinstance(name, str) else shown(name)
        self.room -= len(text)
        return text


def _cut(text: str, most: int) -> str:
    whole = text_out(text)
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _str(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return shown(value)

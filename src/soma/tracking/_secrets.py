"""`Secrets`: the texts that no file of a run may hold, and what stands in their place."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from soma.errors import InvalidInput

HIDDEN = "***"
_NAMED = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_ADDRESS = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")  # a password stands in it
_LEAST_NAMED = 8  # characters; the value of such a variable may also be `1` or `true`
_LEAST = 4  # of one that a user names


class Secrets:
    """Hides some texts wherever they stand, also inside others.

    Args:
        values: the texts, each of four characters at least.

    Raises:
        InvalidInput: one is no text, or so short that it would be found everywhere.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        spelled: set[str] = set()
        for value in values:
            if not isinstance(value, str) or len(value) < _LEAST:
                told = "a short text" if isinstance(value, str) else f"a `{type(value).__name__}`"
                raise InvalidInput(
                    f"{told} came among the `secrets`; texts of {_LEAST} characters or more are "
                    "wanted."
                )
            # As it is, as Python, JSON and an address write it, and as JSON inside of those.
            once = json.dumps(value, ensure_ascii=False)[1:-1]
            spelled |= {value, once, json.dumps(value)[1:-1], quote(value, safe="")}
            spelled |= {repr(value)[1:-1], repr(once)[1:-1], repr(repr(value)[1:-1])[1:-1]}
            spelled.add(json.dumps(once, ensure_ascii=False)[1:-1])
        longest_first = sorted(spelled, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if spelled else None
        self._spelled = tuple(text.encode("utf-8", "replace") for text in longest_first)

    def __bool__(self) -> bool:
        return self._pattern is not None

    def text(self, text: str) -> str:
        """Return a text in which none of them is left."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def stand_in(self, data: bytes) -> bool:
        """Whether one of them stands in a text that is encoded already."""
        return any(text in data for text in self._spelled)

    def hide(self, value: Any) -> Any:
        """Return a value of dicts, lists, tuples and scalars in which no text holds one of them."""
        if self._pattern is None:
            return value
        if type(value) is str:
            return self._pattern.sub(HIDDEN, value)
        if type(value) is dict:
            return {self.hide(name): self.hide(one) for name, one in value.items()}
        if type(value) is list or type(value) is tuple:
            return type(value)(self.hide(one) for one in value)
        return value


def named_secrets(variables: Mapping[str, str] = os.environ) -> set[str]:
    """Return the values of the variables named like secrets, and the passwords in addresses."""
    named = {
        value
        for name, value in variables.items()
        if _NAMED.search(name) and len(value) >= _LEAST_NAMED
    }
    return named.union(
        password
        for value in variables.values()
        for password in _ADDRESS.findall(value)
        if len(password) >= _LEAST_NAMED
    )

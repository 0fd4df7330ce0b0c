"""What people named, as tools take it: names, params, findings."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from soma.draw import printable, shortened
from soma.tracking import Manifest, numbers_out

_MARK = 8  # hexadecimal digits
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 64


def allowed(name: str, refused: re.Pattern[str], longest: int) -> str:
    """Return a name with `_` for what a tool refuses; a name that is fine as it is.

    One that had to be changed ends in a mark of what it was, so that two names stay two.
    """
    clean = refused.sub("_", name)
    if clean == name and 0 < len(name) <= longest:
        return name
    mark = blake2b(name.encode("utf-8", "replace"), digest_size=_MARK // 2).hexdigest()
    return f"{clean[: longest - _MARK - 1]}-{mark}"


def plain_id(run: Manifest) -> str:
    """Return the id of a run, of letters, digits, `_` and `-` alone."""
    return allowed(run.id, _NOT_PLAIN, _LONGEST_ID)


def flat(params: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Give params by name, those in mappings as `outer.inner`; lists as their JSON."""
    for name, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{before}{name}.")
        elif isinstance(value, list | Mapping):
            yield f"{before}{name}", json.dumps(numbers_out(value))
        else:
            yield f"{before}{name}", value


def told(flags: Sequence[Mapping[str, Any]], most: int) -> str:
    """Return findings as a text of a line each, `most` characters at most."""
    lines = [
        printable(f"{flag.get('node_id')}: {flag.get('flag')}: {flag.get('why')}") for flag in flags
    ]
    text = "\n".join(lines)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def title(text: str, most: int) -> str:
    """Return a name for people, on one line, `most` columns at most."""
    return shortened(printable(text), most)

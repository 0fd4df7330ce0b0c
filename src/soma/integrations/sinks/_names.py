"""Names, params and findings in the forms that other tools accept."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from soma.draw import printable, shortened
from soma.tracking import Manifest, numbers_out

_HASH_LENGTH = 8  # hexadecimal digits
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 64


def allowed(name: str, refused: re.Pattern[str], longest: int) -> str:
    """Return a name that a tool accepts: `_` stands for each character that it refuses.

    A changed name ends in a hash of the original, so that two names stay two.
    """
    clean = refused.sub("_", name)
    if clean == name and 0 < len(name) <= longest:
        return name
    mark = blake2b(name.encode("utf-8", "replace"), digest_size=_HASH_LENGTH // 2).hexdigest()
    return f"{clean[: longest - _HASH_LENGTH - 1]}-{mark}"


def plain_id(run: Manifest) -> str:
    """Return the id of a run, of letters, digits, `_` and `-` alone."""
    return allowed(run.id, _NOT_PLAIN, _LONGEST_ID)


def flat(params: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield params by name, nested ones as `outer.inner`, lists as JSON."""
    for name, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{before}{name}.")
        elif isinstance(value, list | Mapping):
            yield f"{before}{name}", json.dumps(numbers_out(value))
        else:
            yield f"{before}{name}", value


def findings_text(flags: Sequence[Mapping[str, Any]], most: int) -> str:
    """Return findings as text, one on each line, cut to `most` characters."""
    lines = [
        printable(f"{flag.get('node_id')}: {flag.get('flag')}: {flag.get('why')}") for flag in flags
    ]
    text = "\n".join(lines)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def title(text: str, most: int) -> str:
    """Return a name for people on one line, cut to `most` columns."""
    return shortened(printable(text), most)

"""Text on a terminal: what may be printed, how wide it is, where it breaks."""

import re
from collections.abc import Iterable
from unicodedata import category, combining, east_asian_width

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movement
    # Titles and links; a beginning ends the one before, or many of them would take for ever.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# `[Linear (linear_2)]` and `_differentiable = True` are one word each.
_WORD = re.compile(r"(?:\[[^\[\]]*\]|`[^`]*`|\S)+")
# Controls, bidi marks and other invisible signs, lone surrogates, line separators.
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    """Return `text` without anything that moves the cursor, breaks the line or turns it round."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in _ESCAPES.sub("", text) if category(char) not in _DROPPED)


def one_line(text: str) -> str:
    """Return `text` printable, with one space for each stretch of spaces and line breaks."""
    return printable(" ".join(text.split()))


def cells(text: str) -> int:
    """Return how many columns a terminal gives to printable `text`."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def shortened(text: str, most: int) -> str:
    """Return `text` in at most `most` columns, with `…` for its middle where it is longer."""
    if cells(text) <= most:
        return text
    head = _fitting(text, most // 2)
    tail = _fitting(reversed(text), most - 1 - most // 2)[::-1]
    while tail and not _cell(tail[0]):  # an accent whose letter is gone
        tail = tail[1:]
    return f"{head}…{tail}"


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` as lines of at most `width` columns; a longer word keeps its own line.

    What stands in brackets or backticks is not broken.
    """
    lines: list[str] = []
    line, filled = "", 0
    for word in _WORD.findall(text):
        wide = cells(word)
        if line and filled + 1 + wide > width:
            lines.append(line)
            line, filled = word, wide
        else:
            line, filled = (f"{line} {word}", filled + 1 + wide) if line else (word, wide)
    return [*lines, line] if line else lines


def _fitting(chars: Iterable[str], most: int) -> str:
    taken, filled = [], 0
    for char in chars:
        filled += _cell(char)
        if filled > most:
            break
        taken.append(char)
    return "".join(taken)


def _cell(char: str) -> int:
    if combining(char) or category(char) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1

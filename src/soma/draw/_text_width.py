"""How wide a text is at most, in whichever sans font a reader's machine has.

The widths are those of DejaVu Sans, the widest of the common ones: a label that fits by them
fits in Segoe UI, San Francisco, Roboto, Helvetica and Arial.
"""

from collections.abc import Iterable
from functools import cache
from unicodedata import category, combining, east_asian_width, normalize

# Thousandths of the font size, from space to `~`.
_REGULAR = (
    *(318, 401, 460, 838, 636, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337),
    *(637, 637, 637, 637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 531),
    *(1000, 685, 687, 699, 771, 632, 576, 775, 752, 295, 295, 656, 558, 863, 749, 788),
    *(604, 788, 695, 635, 611, 732, 685, 989, 686, 611, 686, 391, 337, 391, 838, 500),
    *(500, 613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612),
    *(635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838),
)
_BOLD = (
    *(349, 456, 522, 838, 696, 1003, 873, 307, 458, 458, 524, 838, 380, 416, 380, 366),
    *(696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 581),
    *(1000, 775, 763, 734, 831, 684, 684, 821, 837, 373, 373, 775, 638, 996, 837, 851),
    *(733, 851, 771, 721, 683, 813, 775, 1104, 772, 725, 726, 458, 366, 458, 838, 500),
    *(500, 675, 716, 593, 716, 679, 436, 716, 712, 343, 343, 666, 343, 1042, 712, 688),
    *(716, 716, 494, 596, 479, 712, 653, 924, 646, 653, 583, 713, 366, 713, 838),
)
# Dot, cross, theta and dashes as here; `…` and `→` as wide as anywhere.
_SIGNS = {"\xb7": 380, "\xd7": 838, "…": 1000, "→": 1000, "θ": 688, "\u2013": 500, "\u2014": 1000}
_SIGNS |= {"\u013e": 490, "\u01a0": 920, "\u01af": 880, "\u2031": 1900}
_ALPHABETS_END = 0x590  # before it: Latin, Greek, Cyrillic, Armenian
_LETTER, _WIDE_LETTER = 1020, 1420
_WIDE = frozenset(map(chr, (*range(0x460, 0x530), 0x409, 0x40A, 0x416, 0x428, 0x429, 0x42B, 0x42E)))
_WIDE |= frozenset("\u0448\u0449\u0195\u019c\u01a2\u01f6\u0238\u0239\u026f\u0270\u0271\u0372\u03e2")
_WIDE |= frozenset("\u02a3\u02a4\u02a5\u02a9\u0152\u0153\xc6\xe6")
_SQUARE = 1100
_OTHER = 1530
_PICTOGRAM = 1450  # emoji fonts draw beyond their square
_LONG = {range(0x1400, 0x16A0): 2050, range(0x12000, 0x15000): 4000}  # syllabics; cuneiform
_LEAST = 500  # of an accent that stands alone


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how many pixels a line of `text` takes at most."""
    return sum(_advance(char, bold) for char in text) * size / 1000


def fitted(text: str, size: float, most: float, *, bold: bool = False) -> str:
    """Return `text` in at most `most` pixels, with `…` for its middle where it is wider."""
    if text_width(text, size, bold=bold) <= most:
        return text
    room = most - text_width("…", size, bold=bold)
    head = _taken(text, size, room * 0.55, bold)
    tail = _taken(reversed(text), size, room - text_width(head, size, bold=bold), bold)[::-1]
    while tail and not _advance(tail[0], bold):  # an accent whose letter is gone
        tail = tail[1:]
    return f"{head.rstrip()}…{tail.lstrip()}"


def _taken(chars: Iterable[str], size: float, most: float, bold: bool) -> str:
    taken, filled = [], 0.0
    for char in chars:
        filled += _advance(char, bold) * size / 1000
        if filled > most:
            break
        taken.append(char)
    return "".join(taken)


@cache
def _advance(char: str, bold: bool) -> int:
    if " " <= char <= "~":
        return (_BOLD if bold else _REGULAR)[ord(char) - 32]
    if char in _SIGNS:
        return _SIGNS[char]
    if combining(char) or category(char) in ("Mn", "Me"):
        return 0
    plain = normalize("NFKD", char)
    if plain == char:
        return _unlisted(char)
    parts = sum(_advance(part, bold) for part in plain)  # one sign may be a whole sentence
    return max(parts, _LEAST) if ord(char) < _ALPHABETS_END else max(parts, _unlisted(char))


def _unlisted(char: str) -> int:
    code = ord(char)
    if code < _ALPHABETS_END:
        return _WIDE_LETTER if char in _WIDE else _LETTER
    if 0x2600 <= code <= 0x27FF or 0x1F000 <= code < 0x20000:
        return _PICTOGRAM
    for codes, width in _LONG.items():
        if code in codes:
            return width
    return _SQUARE if east_asian_width(char) in "WF" else _OTHER

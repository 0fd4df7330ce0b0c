"""Colours that can be told from what they stand on, in light and in dark."""

from typing import get_args

import pytest

from soma.draw import INKS, Ink
from soma.draw._badges import TINT

GROUNDS: tuple[Ink, ...] = ("page", "box", "group")
WORDS: tuple[Ink, ...] = ("text", "muted", "accent", "good", "cached", "warning", "bad")
LINES = ("line", *(ink for ink in get_args(Ink) if ink.startswith("series")))


def channels(colour: str) -> list[float]:
    """Return red, green and blue from 0 to 1."""
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def luminance(rgb: list[float]) -> float:
    """Return the relative luminance, as WCAG 2 defines it."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: list[float], other: list[float]) -> float:
    """Return the contrast ratio of two colours, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_ink_has_a_colour() -> None:
    """No ink is without a shade for either page."""
    assert set(INKS) == set(get_args(Ink))


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("ink", WORDS)
def test_words_can_be_read(ink: Ink, ground: Ink, page: str) -> None:
    """Text has a contrast of 4.5, on a badge's tint of its own colour too."""
    words, behind = (channels(getattr(INKS[one], page)) for one in (ink, ground))
    tint = [TINT * a + (1 - TINT) * b for a, b in zip(words, behind, strict=True)]

    assert contrast(words, behind) >= 4.5
    assert contrast(words, tint) >= 4.5


@pytest.mark.parametrize("page", ["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("ink", LINES)
def test_lines_can_be_seen(ink: Ink, ground: Ink, page: str) -> None:
    """A line has a contrast of 3."""
    line, behind = (channels(getattr(INKS[one], page)) for one in (ink, ground))

    assert contrast(line, behind) >= 3

"""Badges: short words on a tint of their ink, side by side."""

from collections.abc import Iterator, Sequence

from soma.draw._cells import one_line
from soma.draw._diagram import Badge
from soma.draw._marks import Mark, Rectangle, Text
from soma.draw._text_width import fitted, text_width

BADGE_HEIGHT = 17.0
TINT = 0.12  # of a badge's ink, behind its words
_SIZE, _PAD, _GAP, _MOST = 10.5, 7.0, 5.0, 200.0


def shown_badges(badges: Sequence[Badge]) -> tuple[Badge, ...]:
    """Return badges with words that fit a box."""
    return tuple(
        Badge(text=fitted(one_line(badge.text), _SIZE, _MOST), ink=badge.ink) for badge in badges
    )


def badge_rows(badges: Sequence[Badge], most: float) -> Iterator[tuple[Badge, ...]]:
    """Break badges into rows of a width."""
    row: tuple[Badge, ...] = ()
    for badge in shown_badges(badges):
        if row and row_width((*row, badge)) > most:
            yield row
            row = ()
        row = (*row, badge)
    if row:
        yield row


def row_width(row: Sequence[Badge]) -> float:
    """Return how wide badges are side by side."""
    return sum(map(_width, row)) + _GAP * (len(row) - 1)


def badge_marks(row: Sequence[Badge], x: float, y: float, key: str) -> Iterator[Mark]:
    """Return the marks of badges side by side."""
    for badge in row:
        yield Rectangle(
            x=x,
            y=y,
            width=_width(badge),
            height=BADGE_HEIGHT,
            fill=badge.ink,
            radius=BADGE_HEIGHT / 2,
            opacity=TINT,
            key=key,
        )
        yield Text(x=x + _PAD, y=y + 12.4, text=badge.text, size=_SIZE, ink=badge.ink, key=key)
        x += _width(badge) + _GAP


def _width(badge: Badge) -> float:
    return text_width(badge.text, _SIZE) + 2 * _PAD

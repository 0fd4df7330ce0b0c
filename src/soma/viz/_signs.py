"""The points of a series that have no place: signs at the edge of a plot, few enough to tell."""

import math
from typing import Literal, NamedTuple

from soma.viz._chart import Series
from soma.viz._scale import Scale

_APART = 9.0  # pixels between signs, so that each can be told from the next
Kind = Literal["NaN", "Infinity", "-Infinity", "0"]


class Sign(NamedTuple):
    """Where there is no number to draw, and what is there; 0 has no place on a log scale."""

    x: float
    kind: Kind
    at_top: bool


def signs(line: Series, across: Scale, down: Scale, width: float) -> list[Sign]:
    """Return the signs of a series, without those that would touch another of their kind.

    Args:
        across: the x axis.
        down: the y axis.
        width: of the plot, in pixels.
    """
    apart = _APART / width
    found: list[Sign] = []
    last: dict[Kind, float] = {}
    for x, y in zip(line.x, line.y, strict=True):
        if down.shows(y):
            continue
        kind = _kind(y)
        if across.place(x) - last.get(kind, -math.inf) >= apart:
            last[kind] = across.place(x)
            found.append(Sign(x, kind, kind == "Infinity"))
    return found


def _kind(y: float) -> Kind:
    if math.isnan(y):
        return "NaN"
    if math.isfinite(y):
        return "0"
    return "Infinity" if y > 0 else "-Infinity"

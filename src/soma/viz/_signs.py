"""The points of a series that are not finite: signs at the edge of a plot, few enough to tell."""

import math
from typing import Literal, NamedTuple

from soma.viz._chart import Series
from soma.viz._scale import Scale

_APART = 9.0  # pixels between signs, so that each can be told from the next
Kind = Literal["NaN", "Infinity", "-Infinity"]


class Sign(NamedTuple):
    """Where there is no number, and what is there."""

    x: float
    kind: Kind
    at_top: bool


def signs(line: Series, across: Scale, width: float) -> list[Sign]:
    """Return the signs of a series, without those that would touch another of their kind.

    Args:
        across: the x axis.
        width: of the plot, in pixels.
    """
    apart = _APART / width
    found: list[Sign] = []
    last: dict[Kind, float] = {}
    for x, y in zip(line.x, line.y, strict=True):
        if math.isfinite(y):
            continue
        kind: Kind = "NaN" if math.isnan(y) else "Infinity" if y > 0 else "-Infinity"
        if across.place(x) - last.get(kind, -math.inf) >= apart:
            last[kind] = across.place(x)
            found.append(Sign(x, kind, kind == "Infinity"))
    return found

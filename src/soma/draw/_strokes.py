"""The geometry of a drawn line: rounded corners, and a head that needs no shared marker."""

from collections.abc import Sequence
from math import hypot

from soma.draw._marks import Point

_HEAD = 7.0
_CORNER = 8.0


def place(value: float) -> str:
    """Return a coordinate with at most one decimal, the same on every machine."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def path(points: Sequence[Point], *, smooth: bool) -> str:
    """Return the `d` of a path through points."""
    (x, y), *rest = points
    parts = [f"M{place(x)} {place(y)}"]
    for index, corner in enumerate(rest, start=1):
        if smooth and index < len(points) - 1:
            reach = min(_CORNER, *(_apart(corner, points[index + step]) / 2 for step in (-1, 1)))
            (ax, ay), (bx, by) = (_towards(corner, points[index + s], reach) for s in (-1, 1))
            turn = f"{place(corner[0])} {place(corner[1])}"
            parts.append(f"L{place(ax)} {place(ay)}Q{turn} {place(bx)} {place(by)}")
        else:
            parts.append(f"L{place(corner[0])} {place(corner[1])}")
    return "".join(parts)


def head(points: Sequence[Point]) -> str:
    """Return the corners of an arrow head at the end of a line."""
    (x, y), base = points[-1], _towards(points[-1], points[-2], _HEAD)
    across = ((y - base[1]) * 0.5, (base[0] - x) * 0.5)
    corners = ((x, y), _plus(base, across, 1), _plus(base, across, -1))
    return " ".join(f"{place(a)},{place(b)}" for a, b in corners)


def shortened_for_head(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the line without the stretch that its head covers."""
    return (*points[:-1], _towards(points[-1], points[-2], _HEAD - 1.5))


def _plus(base: Point, across: Point, side: int) -> Point:
    return (base[0] + side * across[0], base[1] + side * across[1])


def _apart(one: Point, other: Point) -> float:
    return hypot(other[0] - one[0], other[1] - one[1])


def _towards(start: Point, aim: Point, reach: float) -> Point:
    share = reach / (_apart(start, aim) or 1.0)
    return (start[0] + (aim[0] - start[0]) * share, start[1] + (aim[1] - start[1]) * share)

"""What is asked of a layout, and what it answers: sizes in, places and polylines out."""

from collections.abc import Sequence
from dataclasses import dataclass

from soma.draw._marks import Point

Size = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A box to be placed, or a frame, which gets its size from the blocks that it holds."""

    size: Size = (0.0, 0.0)
    parent: int | None = None  # the frame around it, by its place among the blocks
    frame: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A line to be drawn between two boxes, and the room that its label takes."""

    source: int
    target: int
    label: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The blocks and links of one drawing."""

    blocks: tuple[Block, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Where a block stands: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The way of one link, and the middle of its label."""

    points: tuple[Point, ...]
    label: Point | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """A finished layout, its upper left corner at (0, 0). A frame without a place is `None`."""

    areas: tuple[Area | None, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def middle(points: Sequence[Point]) -> Point:
    """Return where a label goes on a line for which nobody has said it."""
    at = (len(points) - 1) // 2
    (ax, ay), (bx, by) = points[at], points[at + 1]
    return ((ax + bx) / 2, (ay + by) / 2)


def from_origin(
    areas: Sequence[Area | None], routes: Sequence[Route], labels: Sequence[Size | None]
) -> Places:
    """Return places moved so that nothing, label or line, lies left of or above (0, 0)."""
    spans = [(a.x, a.y, a.x + a.width, a.y + a.height) for a in areas if a]
    for route, label in zip(routes, labels, strict=True):
        spans += ((x, y, x, y) for x, y in route.points)
        if route.label and label:
            (x, y), (wide, high) = route.label, label
            spans.append((x - wide / 2, y - high / 2, x + wide / 2, y + high / 2))
    if not spans:
        return Places(areas=tuple(areas), routes=tuple(routes), width=0.0, height=0.0)
    left, top = min(span[0] for span in spans), min(span[1] for span in spans)
    return Places(
        areas=tuple(
            a and Area(x=a.x - left, y=a.y - top, width=a.width, height=a.height) for a in areas
        ),
        routes=tuple(
            Route(
                points=tuple((x - left, y - top) for x, y in route.points),
                label=route.label and (route.label[0] - left, route.label[1] - top),
            )
            for route in routes
        ),
        width=max(span[2] for span in spans) - left,
        height=max(span[3] for span in spans) - top,
    )

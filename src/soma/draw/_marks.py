"""What a picture is made of: rectangles, lines and texts at places, inked by name.

A place is in pixels, from the upper left corner. `_svg.py` writes marks down; an ink is a
colour in light and another in dark (`_inks.py`).
"""

from dataclasses import dataclass
from typing import Literal

Ink = Literal[
    "text",  # what is read
    "muted",  # what is read second
    "line",  # edges and axes
    "grid",  # what an eye may pass over
    "page",  # behind everything
    "box",  # a node
    "group",  # what holds nodes
    "accent",
    "good",
    "cached",
    "warning",
    "bad",
    "series1",
    "series2",
    "series3",
    "series4",
    "series5",
    "series6",
    "series7",
    "series8",
]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A box; `title` is what a pointer resting on it reads, `key` what a click selects."""

    x: float
    y: float
    width: float
    height: float
    fill: Ink | None = None
    stroke: Ink | None = None
    thickness: float = 1.0
    radius: float = 0.0
    dashed: bool = False
    opacity: float = 1.0
    title: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points; `smooth` rounds its corners, `arrow` points at its end."""

    points: tuple[Point, ...]
    stroke: Ink = "line"
    thickness: float = 1.0
    dashed: bool = False
    arrow: bool = False
    smooth: bool = False
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A line of text, its baseline at `y`."""

    x: float
    y: float
    text: str
    size: float = 12.0
    ink: Ink = "text"
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float = 3.0
    fill: Ink = "accent"
    title: str | None = None


Mark = Rectangle | Line | Text | Dot


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Marks on a page of a size, with words for those who do not see it."""

    width: float
    height: float
    marks: tuple[Mark, ...]
    title: str
    description: str = ""

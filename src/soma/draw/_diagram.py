"""Boxes and arrows, before anybody has said where they stand.

`_layout.py` finds the places, `_diagram_picture.py` makes the marks.
"""

from dataclasses import dataclass

from soma.draw._marks import Ink


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A short word on a box, with a sign so that it reads without colour."""

    text: str  # `cached`, `VANISHING`
    ink: Ink


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node of a diagram."""

    key: str  # unique in its diagram; never shown
    title: str
    lines: tuple[str, ...] = ()  # smaller, below the title
    badges: tuple[Badge, ...] = ()
    stroke: Ink = "line"
    dashed: bool = False
    small: bool = False  # an operation: one line, rounder
    tooltip: str = ""
    group: str | None = None  # boxes of one group stand in one frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """An edge of a diagram."""

    source: str
    target: str
    label: str = ""
    ink: Ink = "line"
    dashed: bool = False
    tooltip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A frame around boxes, and around the frames whose `parent` it is."""

    key: str
    title: str
    parent: str | None = None
    badges: tuple[Badge, ...] = ()
    tooltip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One entry of a legend: how something looks, and what that means."""

    text: str
    ink: Ink
    dashed: bool = False
    arrow: bool = False  # a line with a head; otherwise a box
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Boxes and arrows; they make no cycle."""

    title: str
    subtitle: str = ""
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    groups: tuple[Group, ...] = ()
    legend: tuple[Sample, ...] = ()

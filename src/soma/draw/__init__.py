"""Puts things where an eye can read them: text and trees in a terminal, pictures as SVG.

A picture is made in three steps: `_diagram.py` says what there is, `_diagram_picture.py` where it
stands, `_svg.py` writes it down. Those are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from soma import _extras
from soma.draw._cells import cells, one_line, printable, shortened, wrapped
from soma.draw._tree import Tree

if TYPE_CHECKING:
    from soma.draw._amount import amount, counted
    from soma.draw._diagram import Arrow, Badge, Box, Diagram, Group, Sample
    from soma.draw._diagram_picture import diagram_picture
    from soma.draw._inks import INKS, Shade
    from soma.draw._marks import Dot, Ink, Line, Mark, Picture, Point, Rectangle, Text
    from soma.draw._svg import svg
    from soma.draw._text_width import fitted, text_width

_LATE = {
    **dict.fromkeys(("amount", "counted"), "_amount"),
    **dict.fromkeys(("Arrow", "Badge", "Box", "Diagram", "Group", "Sample"), "_diagram"),
    "diagram_picture": "_diagram_picture",
    **dict.fromkeys(("INKS", "Shade"), "_inks"),
    **dict.fromkeys(
        ("Dot", "Ink", "Line", "Mark", "Picture", "Point", "Rectangle", "Text"), "_marks"
    ),
    "svg": "_svg",
    **dict.fromkeys(("fitted", "text_width"), "_text_width"),
}

__all__ = [
    "Arrow",
    "Badge",
    "Box",
    "Diagram",
    "Dot",
    "Group",
    "INKS",
    "Ink",
    "Line",
    "Mark",
    "Picture",
    "Point",
    "Rectangle",
    "Sample",
    "Shade",
    "Text",
    "Tree",
    "amount",
    "cells",
    "counted",
    "diagram_picture",
    "fitted",
    "one_line",
    "printable",
    "shortened",
    "svg",
    "text_width",
    "wrapped",
]

__getattr__ = _extras.late(__name__, _LATE, extra="all")

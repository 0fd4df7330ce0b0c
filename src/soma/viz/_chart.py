"""What a chart says, in the units of its data, before anybody has said where it stands.

`figures/` makes charts of what was recorded; `_chart_picture.py` draws them with marks of
`soma.draw`, `_chart_plotly.py` with Plotly.
"""

from dataclasses import dataclass
from typing import Literal

from soma.draw import Ink

AxisKind = Literal["linear", "log", "integer", "seconds", "category"]
Style = Literal["plain", "hollow", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """How numbers become places: the n-th category stands at n, the first at 0."""

    title: str = ""
    kind: AxisKind = "linear"
    categories: tuple[str, ...] = ()
    ends: tuple[float, float] | None = None  # what it shows at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line through points; what the axis cannot show is a gap with a sign at the edge."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    ink: Ink
    dashed: bool = False
    joined: bool = True  # else dots alone
    thickness: float = 1.8
    key: bool = True  # is it named in the legend, and to those who see no picture?


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of a lane: a turn of a node, or a cell of a table."""

    lane: int
    start: float
    end: float
    text: str = ""  # on it, or beside it where it is too short
    tooltip: str = ""
    strength: float = 1.0  # 0 is as good as not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks that mean the same; `style` tells them from others without colour."""

    name: str
    ink: Ink
    blocks: tuple[Block, ...]
    style: Style = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A table of numbers from -1 to 1, each a cell in a colour; NaN is an empty one.

    Its columns are the categories of the x axis, its rows those of the y axis.
    """

    rows: tuple[tuple[float, ...], ...]
    parts: tuple[int, ...] = ()  # rows, and columns, before which a line is drawn
    empty: str = "no number"  # what a cell without one means


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Words beside the right end of a lane."""

    text: str
    ink: Ink = "muted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A pair of axes with what is drawn on them; the y axis of lanes runs downwards."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    blocks: tuple[Blocks, ...] = ()
    cells: Cells | None = None
    note: str = ""  # a sentence below the title
    remarks: tuple[Remark, ...] = ()  # one for each lane, or none at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Panels under one title."""

    title: str
    panels: tuple[Panel, ...]
    note: str = ""
    columns: int = 2  # of panels, where the page is wide enough
    empty: str = "nothing was recorded"  # what stands there when there are no panels

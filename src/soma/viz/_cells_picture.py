"""Draws a table of numbers from -1 to 1 as cells in colour, and the scale of its colours."""

import math
from collections.abc import Iterator
from itertools import groupby

from soma.draw import Ink, Line, Mark, Rectangle, Text, text_width
from soma.viz._chart import Cells, Panel
from soma.viz._chart_layout import SMALL
from soma.viz._words import line_of

POSITIVE: Ink = "series1"
NEGATIVE: Ink = "series2"
_LEVELS = 10  # of strength, so that alike neighbours become one rectangle
SWATCHES = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
_SWATCH = 14.0
_TOLD = 256  # cells; of more, a pointer reads none: the picture would weigh too much
_TIMES = "\N{MULTIPLICATION SIGN}"
MINUS = "\N{MINUS SIGN}"


def cells_drawn(
    panel: Panel, left: float, top: float, width: float, height: float
) -> Iterator[Mark]:
    """Draw the cells of a panel between its axes."""
    cells = panel.cells
    if cells is None or not cells.rows:
        return
    down, across = height / len(cells.rows), width / len(cells.rows[0])
    is_told = len(cells.rows) * len(cells.rows[0]) <= _TOLD
    for row, values in enumerate(cells.rows):
        y = top + row * down
        if is_told:
            for column, value in enumerate(values):
                title = told(panel, row, column, value)
                yield _cell(_level(value), left + column * across, y, across, down, title)
            continue
        for level, run in groupby(enumerate(values), key=lambda one: _level(one[1])):
            columns = [column for column, _ in run]
            if level != 0:
                x = left + columns[0] * across
                yield _cell(level, x, y, across * len(columns), down, None)
    yield from _strikes(cells, left, top, width, height)
    for part in cells.parts:
        x, y = left + part * across, top + part * down
        yield Line(points=((x, top), (x, top + height)), stroke="text", thickness=1.5)
        yield Line(points=((left, y), (left + width, y)), stroke="text", thickness=1.5)
    yield Rectangle(x=left, y=top, width=width, height=height, stroke="line")


def ramp(cells: Cells, x: float, y: float, width: float) -> Iterator[Mark]:
    """Draw which colour is which number, on a line of words whose baseline is at `y`."""
    low = f"{MINUS}1"
    yield Text(x=x, y=y, text=low, size=SMALL, ink="muted")
    x += text_width(low, SMALL) + 4
    for value in SWATCHES:
        yield _cell(_level(value), x, y - 9, _SWATCH, 10, f"{value:g}")
        x += _SWATCH
    whole = _SWATCH * len(SWATCHES)
    yield Rectangle(x=x - whole, y=y - 9, width=whole, height=10, stroke="line", thickness=0.5)
    yield Text(x=x + 4, y=y, text="1", size=SMALL, ink="muted")
    x += 24
    if any(map(math.isnan, (value for row in cells.rows for value in row))):
        yield _cell(None, x, y - 9, _SWATCH, 10, cells.empty)
        yield Line(points=((x, y - 4), (x + _SWATCH, y - 4)), stroke="line")
        text = line_of(cells.empty, SMALL, width - 220)
        yield Text(x=x + _SWATCH + 6, y=y, text=text, size=SMALL, ink="muted")


def _strikes(cells: Cells, left: float, top: float, width: float, height: float) -> Iterator[Mark]:
    count = len(cells.rows)
    for index in struck(cells):
        y, x = top + (index + 0.5) * height / count, left + (index + 0.5) * width / count
        yield Line(points=((left, y), (left + width, y)), stroke="line")
        yield Line(points=((x, top), (x, top + height)), stroke="line")


def struck(cells: Cells) -> list[int]:
    """Return the rows, which are columns too, without a number but perhaps one with themselves."""
    return [
        index
        for index, row in enumerate(cells.rows)
        if all(math.isnan(value) for column, value in enumerate(row) if column != index)
    ]


def _level(value: float) -> int | None:
    return None if math.isnan(value) else round(max(-1.0, min(1.0, value)) * _LEVELS)


def _cell(
    level: int | None, x: float, y: float, width: float, height: float, title: str | None
) -> Rectangle:
    if level is None:
        return Rectangle(x=x, y=y, width=width, height=height, fill="grid", title=title)
    ink, strength = (POSITIVE if level > 0 else NEGATIVE), abs(level) / _LEVELS
    return Rectangle(x=x, y=y, width=width, height=height, fill=ink, opacity=strength, title=title)


def told(panel: Panel, row: int, column: int, value: float) -> str:
    """Say of which row and column a cell is, and its number."""
    names = f"{panel.y.categories[row]} {_TIMES} {panel.x.categories[column]}"
    empty = panel.cells.empty if panel.cells is not None else ""
    return f"{names}: {empty if math.isnan(value) else f'{value:.2f}'}"

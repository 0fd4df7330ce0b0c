"""Draws what lies between the axes of one panel, and the axes."""

from collections.abc import Iterator
from typing import NamedTuple

from soma.draw import Dot, Ink, Line, Mark, Point, Rectangle, Text, text_width
from soma.viz._block_words import block_words
from soma.viz._cells_picture import cells_drawn
from soma.viz._chart import Block, Blocks, Series, Style
from soma.viz._chart_layout import SMALL, Place, plot_width, remarks_of, remarks_width
from soma.viz._scale import Scale, spaced, x_scale, y_scale
from soma.viz._signs import Sign, signs
from soma.viz._words import line_of

_SIGNS = {"NaN": "✕", "Infinity": "▲", "-Infinity": "▼", "0": "0"}


class _Field(NamedTuple):
    """A plot in pixels, with its scales."""

    x: Scale
    y: Scale
    left: float
    right: float
    top: float
    bottom: float

    def across(self, value: float) -> float:
        """Return how far right a value stands."""
        return self.left + self.x.place(value) * (self.right - self.left)

    def down(self, value: float) -> float:
        """Return how far down a value stands; lanes are counted from above."""
        share = self.y.place(value)
        if self.y.axis.kind != "category":
            share = 1 - share
        return self.top + share * (self.bottom - self.top)


def plotted(place: Place) -> Iterator[Mark]:
    """Draw axes, grid, lines and blocks of a panel."""
    panel = place.panel
    y = y_scale(panel)
    lanes = panel.y.kind == "category"
    most = place.width * 0.3 if lanes else place.width * 0.5
    names = [line_of(tick.label, SMALL, most) for tick in y.ticks]
    left = place.x + max((text_width(name, SMALL) for name in names), default=0.0) + 10
    beside = remarks_width(place)
    x = x_scale(panel, place.x + place.width - beside - left)
    spare = text_width(x.ticks[-1].label, SMALL) / 2 if x.ticks and not x.axis.categories else 0.0
    right = place.x + place.width - max(8.0, spare, beside)
    right = left + plot_width(place, right - left)
    field = _Field(x, y, left, right, place.top, place.bottom)
    yield from _axes(field, names, place)
    if panel.cells is not None:
        width, height = right - left, place.bottom - place.top
        yield from cells_drawn(panel, left, place.top, width, height)
    for lane, (words, remark) in enumerate(remarks_of(place)):
        down = field.down(lane) + (4 if len(words) == 1 else -2)
        for at, text in enumerate(words):
            yield Text(x=right + 8, y=down + 12 * at, text=text, size=SMALL, ink=remark.ink)
        if " ".join(words) != remark.text:
            yield _resting(right + 8, down - 9, beside - 8, 24, remark.text)
    for group in panel.blocks:
        for one in group.blocks:
            yield _block(one, group, field)
    yield from _words(panel.blocks, field)
    for line in panel.series:
        yield from _line(line, field)


def _axes(field: _Field, names: list[str], place: Place) -> Iterator[Mark]:
    lanes = field.y.axis.kind == "category"
    for tick, name in zip(field.y.ticks, names, strict=True):
        # Between lanes and not through them: words stand in a lane.
        y = field.down(tick.value - 0.5 if lanes else tick.value)
        yield Line(points=((field.left, y), (field.right, y)), stroke="grid")
        y = field.down(tick.value) + 4
        yield Text(x=field.left - 6, y=y, text=name, size=SMALL, ink="muted", anchor="end")
        if name != tick.label:
            yield _resting(place.x, y - 13, field.left - 6 - place.x, 18, tick.label)
    yield Line(points=((field.left, field.bottom), (field.right, field.bottom)), stroke="line")
    ticks, room = spaced(field.x, field.right - field.left)
    for tick in ticks:
        x = field.across(tick.value)
        yield Line(points=((x, field.bottom), (x, field.bottom + 4)), stroke="line")
        ends = 2 * (place.x + place.width + 8 - x)
        label = line_of(tick.label, SMALL, min(max(room - 4, 40), ends))
        y = field.bottom + 16
        yield Text(x=x, y=y, text=label, size=SMALL, ink="muted", anchor="middle")
    if field.x.title:
        middle = (field.left + field.right) / 2
        title = line_of(field.x.title, SMALL, field.right - field.left)
        y = field.bottom + 32
        yield Text(x=middle, y=y, text=title, size=SMALL, ink="muted", anchor="middle")


def _line(line: Series, field: _Field) -> Iterator[Mark]:
    """Draw a series: its stretches of numbers, and signs where there is none."""
    if not line.joined:
        yield from _dots(line, field)
        return
    stretch: list[Point] = []
    for x, y in zip(line.x, line.y, strict=True):
        if field.y.shows(y):
            stretch.append((field.across(x), field.down(y)))
        else:
            yield from _stretch(stretch, line)
            stretch = []
    yield from _stretch(stretch, line)
    for sign in signs(line, field.x, field.y, field.right - field.left):
        yield from _sign(line, sign, field)


def _dots(line: Series, field: _Field) -> Iterator[Mark]:
    for x, y in zip(line.x, line.y, strict=True):
        title = f"{line.name}: {x:.3g}"
        yield Dot(x=field.across(x), y=field.down(y), radius=3.5, fill=line.ink, title=title)


def _stretch(points: list[Point], line: Series) -> Iterator[Mark]:
    if len(points) == 1:
        yield Dot(x=points[0][0], y=points[0][1], radius=2.5, fill=line.ink, title=line.name)
    elif points:
        yield Line(
            points=tuple(points),
            stroke=line.ink,
            thickness=line.thickness,
            dashed=line.dashed,
            title=line.name,
        )


def _sign(line: Series, sign: Sign, field: _Field) -> Iterator[Mark]:
    x = field.across(sign.x)
    y = field.top + 8 if sign.at_top else field.bottom - 3
    text = _SIGNS[sign.kind]
    yield Text(x=x, y=y, text=text, size=SMALL, ink=line.ink, anchor="middle", bold=True)
    yield _resting(x - 5, y - 9, 10, 11, f"{line.name}: {sign.kind} at {sign.x:g}")


def _resting(x: float, y: float, width: float, height: float, title: str) -> Rectangle:
    """Return a place that says something when a pointer rests on it."""
    return Rectangle(x=x, y=y, width=width, height=height, fill="page", opacity=0, title=title)


def _ends(one: Block, field: _Field) -> tuple[float, float]:
    """Return where a block begins and ends; the shortest still shows."""
    start = field.across(one.start)
    end = max(field.across(one.end), start + 1.5)
    return start, end


def _block(one: Block, group: Blocks, field: _Field) -> Rectangle:
    start, end = _ends(one, field)
    middle = field.down(one.lane)
    return styled_block(
        start,
        middle - 8,
        end - start,
        16,
        ink=group.ink,
        style=group.style,
        title=one.tooltip,
        strength=one.strength,
    )


def styled_block(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    ink: Ink,
    style: Style,
    title: str,
    strength: float = 1.0,
) -> Rectangle:
    """Return a rectangle in a style that reads without colour."""
    hollow = style == "hollow" and width > 6  # of a narrower one, nothing would be left
    return Rectangle(
        x=x,
        y=y,
        width=width,
        height=height,
        fill="page" if hollow else ink,
        stroke=ink if hollow else None,
        thickness=1.5,
        dashed=hollow,
        radius=min(2.0, width / 2),
        opacity=strength,
        title=title or None,
    )


def _words(groups: tuple[Blocks, ...], field: _Field) -> Iterator[Mark]:
    """Write on each block, or beside it, where there is room."""

    def ends(one: Block) -> tuple[float, float]:
        start, end = _ends(one, field)
        return start - field.left, end - field.left

    for block, group, text, side in block_words(groups, ends, field.right - field.left):
        start, end = _ends(block, field)
        y = field.down(block.lane) + 4
        if side == "on":
            ink: Ink = group.ink if group.style == "hollow" else "page"
            yield Text(x=start + 4, y=y, text=text, size=SMALL, ink=ink)
        elif side == "after":
            yield Text(x=end + 4, y=y, text=text, size=SMALL, ink="muted")
        else:
            yield Text(x=start - 4, y=y, text=text, size=SMALL, ink="muted", anchor="end")

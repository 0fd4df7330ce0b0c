"""Where the panels of a chart stand, and the words above them, for both back ends."""

from dataclasses import dataclass
from typing import Literal

from soma.draw import Ink, text_width
from soma.viz._chart import Chart, Panel, Remark, Style
from soma.viz._words import line_of, lines_of

TITLE, SUBTITLE, SMALL = 16.0, 13.0, 11.0  # sizes of text
MARGIN = 16.0
GAP = 28.0  # between panels
LINE = 16.0  # from one line of small text to the next
PLOT = 190.0  # the height of a plot of lines
LANE = 26.0
NARROW = 640.0  # below it there is one column of panels
SIGN = 22.0  # how wide the sign of a key is, with the space after it
_REMARKS = 0.44  # the share of a panel's width that remarks beside its lanes may take
_CELLS = (12.0, 22.0)  # the height of a lane of cells, at least and at most
_LONGISH = 1.6  # a cell is at most so many times as wide as it is high
_NAMES = 80.0  # about as wide as the names of lanes of cells


KeyStyle = Style | Literal["line", "dashed", "dot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What one colour and style of a panel mean."""

    x: float  # from the panel's left side
    row: int
    text: str
    name: str  # in full
    ink: Ink
    style: KeyStyle


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A panel with its words cut to its width; the plot lies between `top` and `bottom`."""

    panel: Panel
    x: float
    y: float
    width: float
    title: str
    note: tuple[str, ...]
    keys: tuple[Key, ...]
    top: float
    bottom: float

    @property
    def baseline(self) -> float:
        """Of the first line below the title, or of the first where there is none."""
        return self.y + (SUBTITLE + LINE + 2 if self.title else SMALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A chart on a page of a width, with the height it needs."""

    width: float
    height: float
    title: str
    note: tuple[str, ...]
    places: tuple[Place, ...]


def laid_out(chart: Chart, width: float) -> Layout:
    """Return the places of a chart's panels: in two columns where there are several."""
    inner = width - 2 * MARGIN
    note = tuple(lines_of(chart.note, SMALL, inner))
    y = MARGIN + TITLE + 8 + LINE * len(note) + 8
    columns = chart.columns if len(chart.panels) > 1 and width >= NARROW else 1
    across = (inner - GAP * (columns - 1)) / columns
    places: list[Place] = []
    for first in range(0, len(chart.panels), columns):
        row = chart.panels[first : first + columns]
        heads = [(tuple(lines_of(one.note, SMALL, across)), _keys(one, across)) for one in row]
        # The plots of a row begin together.
        head = max(_head(one, *words) for one, words in zip(row, heads, strict=True))
        foot = max(_foot(panel) for panel in row)
        tall = max(_tall(panel, across) for panel in row)
        for column, (panel, (lines, keys)) in enumerate(zip(row, heads, strict=True)):
            places.append(
                Place(
                    panel=panel,
                    x=MARGIN + column * (across + GAP),
                    y=y,
                    width=across,
                    title=line_of(panel.title, SUBTITLE, across, bold=True),
                    note=lines,
                    keys=keys,
                    top=y + head,
                    bottom=y + head + tall,
                )
            )
        y += head + tall + foot + GAP
    height = y - GAP + MARGIN if places else y + LINE + MARGIN
    title = line_of(chart.title, TITLE, inner, bold=True)
    return Layout(width=width, height=height, title=title, note=note, places=tuple(places))


def _head(panel: Panel, note: tuple[str, ...], keys: tuple[Key, ...]) -> float:
    rows = len(note) + (1 + keys[-1].row if keys else 0) + (panel.cells is not None)
    return LINE * rows + 12 + (SUBTITLE + 2 if panel.title else 0)


def _foot(panel: Panel) -> float:
    return 20 + (LINE if panel.x.title else 0)


def _tall(panel: Panel, width: float) -> float:
    lanes = max(1, len(panel.y.categories))
    if panel.cells is not None:
        least, most = _CELLS
        return lanes * min(most, max(least, (width - _NAMES) / lanes))
    return LANE * lanes if panel.y.kind == "category" else PLOT


def _keys(panel: Panel, width: float) -> tuple[Key, ...]:
    """Return the legend in as many rows as it needs; one line alone is named by the title."""
    named: list[tuple[str, Ink, KeyStyle]] = [
        (line.name, line.ink, "dot" if not line.joined else "dashed" if line.dashed else "line")
        for line in panel.series
        if line.key
    ]
    if len(panel.series) == 1 and not panel.blocks:
        return ()
    named += [(group.name, group.ink, group.style) for group in panel.blocks]
    keys: list[Key] = []
    x, row = 0.0, 0
    for name, ink, style in named:
        text = line_of(name, SMALL, width - SIGN)
        wide = SIGN + text_width(text, SMALL)
        if x and x + wide > width:
            x, row = 0.0, row + 1
        keys.append(Key(x=x, row=row, text=text, name=name, ink=ink, style=style))
        x += wide + 16
    return tuple(keys)


def remarks_of(place: Place) -> list[tuple[tuple[str, ...], Remark]]:
    """Return the remarks of a panel's lanes, each in one or two lines that fit in."""
    most = place.width * _REMARKS
    found = []
    for one in place.panel.remarks:
        first, *others = lines_of(one.text, SMALL, most) or [""]
        rest = [line_of(" ".join(others), SMALL, most)] if others else []
        found.append(((first, *rest), one))
    return found


def remarks_width(place: Place) -> float:
    """Return what the remarks of a panel take of its width."""
    lines = [line for lines, _ in remarks_of(place) for line in lines]
    return max((text_width(line, SMALL) + 8 for line in lines), default=0.0)


def plot_width(place: Place, room: float) -> float:
    """Return how wide a plot is that has some room: cells do not grow without end."""
    if place.panel.cells is None:
        return room
    lanes = max(1, len(place.panel.y.categories))
    cell = (place.bottom - place.top) / lanes
    return min(room, _LONGISH * cell * max(1, len(place.panel.x.categories)))

"""Where the panels of a chart stand, and the words above them, for both back ends."""

from dataclasses import dataclass
from typing import Literal

from soma.draw import Ink, text_width
from soma.viz._chart import Chart, Panel, Style
from soma.viz._words import line_of, lines_of

TITLE, SUBTITLE, SMALL = 16.0, 13.0, 11.0  # sizes of text
MARGIN = 16.0
GAP = 28.0  # between panels
LINE = 16.0  # from one line of small text to the next
PLOT = 190.0  # the height of a plot of lines
LANE = 26.0
NARROW = 640.0  # below it there is one column of panels
SIGN = 22.0  # how wide the sign of a key is, with the space after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What one colour and style of a panel mean."""

    x: float  # from the panel's left side
    row: int
    text: str
    name: str  # in full
    ink: Ink
    style: Style | Literal["line", "dashed"]


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
    columns = 2 if len(chart.panels) > 1 and width >= NARROW else 1
    across = (inner - GAP * (columns - 1)) / columns
    places: list[Place] = []
    for first in range(0, len(chart.panels), columns):
        row = chart.panels[first : first + columns]
        heads = [(tuple(lines_of(one.note, SMALL, across)), _keys(one, across)) for one in row]
        # The plots of a row begin together.
        head = max(_head(one, *words) for one, words in zip(row, heads, strict=True))
        foot = max(_foot(panel) for panel in row)
        tall = max(_tall(panel) for panel in row)
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
    rows = len(note) + (1 + keys[-1].row if keys else 0)
    return LINE * rows + 12 + (SUBTITLE + 2 if panel.title else 0)


def _foot(panel: Panel) -> float:
    return 20 + (LINE if panel.x.title else 0)


def _tall(panel: Panel) -> float:
    return LANE * max(1, len(panel.y.categories)) if panel.y.kind == "category" else PLOT


def _keys(panel: Panel, width: float) -> tuple[Key, ...]:
    """Return the legend in as many rows as it needs; one line alone is named by the title."""
    named: list[tuple[str, Ink, Style | Literal["line", "dashed"]]] = [
        (line.name, line.ink, "dashed" if line.dashed else "line") for line in panel.series
    ]
    if len(named) == 1 and not panel.blocks:
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

"""Draws a chart with the marks of `soma.draw`: static, without script."""

from collections.abc import Iterator

from soma.draw import Dot, Line, Mark, Picture, Text
from soma.viz._cells_picture import ramp
from soma.viz._chart import Chart, Panel
from soma.viz._chart_layout import (
    LINE,
    MARGIN,
    SIGN,
    SMALL,
    SUBTITLE,
    TITLE,
    Key,
    Place,
    laid_out,
)
from soma.viz._panel_picture import plotted, styled_block

WIDTH = 960.0
_LEAST = 320.0  # narrower than this, words do not fit


def chart_picture(chart: Chart, width: float = WIDTH) -> Picture:
    """Return a chart as a picture of a width."""
    layout = laid_out(chart, max(_LEAST, width))
    marks: list[Mark] = [
        Text(x=MARGIN, y=MARGIN + TITLE - 2, text=layout.title, size=TITLE, bold=True)
    ]
    y = MARGIN + TITLE + LINE
    marks += _lines(layout.note, MARGIN, y)
    if not layout.places:
        y += LINE * len(layout.note)
        marks.append(Text(x=MARGIN, y=y, text=chart.empty, size=SUBTITLE, ink="muted"))
    for place in layout.places:
        marks += _heading(place)
        marks += plotted(place)
    return Picture(
        width=layout.width,
        height=layout.height,
        marks=tuple(marks),
        title=chart.title,
        description=_description(chart),
    )


def _description(chart: Chart) -> str:
    """Say in words what there is to see, for those who do not."""
    if not chart.panels:
        return chart.note or chart.empty
    return "; ".join(map(_panel_in_words, chart.panels))


def _panel_in_words(panel: Panel) -> str:
    drawn = [*(one.name for one in panel.series if one.key), *(one.name for one in panel.blocks)]
    drawn += (one.text for one in panel.remarks)
    lanes = f"of {', '.join(panel.y.categories)}" if panel.y.categories else ""
    contents = " ".join(filter(None, (", ".join(drawn), lanes)))
    return ". ".join(filter(None, (panel.title, contents, panel.note)))


def _lines(lines: tuple[str, ...], x: float, y: float) -> Iterator[Mark]:
    for index, line in enumerate(lines):
        yield Text(x=x, y=y + LINE * index, text=line, size=SMALL, ink="muted")


def _heading(place: Place) -> Iterator[Mark]:
    if place.title:
        y = place.y + SUBTITLE
        yield Text(x=place.x, y=y, text=place.title, size=SUBTITLE, bold=True)
    yield from _lines(place.note, place.x, place.baseline)
    y = place.baseline + LINE * len(place.note)
    for key in place.keys:
        yield from _key(key, place.x + key.x, y + LINE * key.row)
    if place.panel.cells is not None:
        yield from ramp(place.panel.cells, place.x, y, place.width)


def _key(key: Key, x: float, y: float) -> Iterator[Mark]:
    """Draw a sign of a legend and its words, whose baseline is at `y`."""
    if key.style == "dot":
        yield Dot(x=x + 8, y=y - 4, radius=3.5, fill=key.ink, title=key.name)
    elif key.style == "line" or key.style == "dashed":
        points = ((x, y - 4), (x + 16, y - 4))
        dashed = key.style == "dashed"
        yield Line(points=points, stroke=key.ink, thickness=2.5, dashed=dashed, title=key.name)
    else:
        yield styled_block(x, y - 9, 14, 10, ink=key.ink, style=key.style, title=key.name)
        if key.style == "failed":
            yield Text(x=x + 7, y=y - 0.5, text="✕", size=SMALL, ink="page", anchor="middle")
    yield Text(x=x + SIGN, y=y, text=key.text, size=SMALL, ink="muted")

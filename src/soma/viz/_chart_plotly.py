"""Draws a chart with Plotly, as the JSON that Plotly reads; `_figure.py` makes the object.

It stands on the page's own colour, light or dark, so its inks read on both. Names are
escaped: Plotly takes markup, entities and formulas in every text.
"""

import math
from typing import Any

from soma.draw import text_width
from soma.viz._cells_picture import struck
from soma.viz._chart import Chart, Panel
from soma.viz._chart_layout import (
    LINE,
    MARGIN,
    SMALL,
    SUBTITLE,
    TITLE,
    Place,
    laid_out,
    plot_width,
    remarks_of,
    remarks_width,
)
from soma.viz._plotly_traces import (
    INKS,
    TEXT,
    bar_traces,
    cell_trace,
    inert,
    line_traces,
    ramp_text,
)
from soma.viz._scale import Scale, spaced, x_scale, y_scale
from soma.viz._words import line_of

_NARROWEST = 660.0  # pixels: words are cut to fit it, a wider page only gives more room
_LINE, _GRID = "#808a96", "rgba(128,138,150,0.25)"
_KEY_SIGNS = {"line": "━", "dashed": "╍", "dot": "●", "plain": "■", "hollow": "▨", "failed": "■"}


def chart_json(chart: Chart) -> dict[str, Any]:
    """Return `data` and `layout` of a Plotly figure."""
    layout = laid_out(chart, _NARROWEST)
    page = _Page(layout.width, layout.height)
    page.write(MARGIN, MARGIN + TITLE - 2, f"<b>{inert(layout.title)}</b>", TITLE)
    if not layout.places:
        page.write(MARGIN, layout.height - MARGIN, inert(chart.empty), SUBTITLE)
    for index, line in enumerate(layout.note):
        page.write(MARGIN, MARGIN + TITLE + LINE * (index + 1), inert(line), SMALL)
    for number, place in enumerate(layout.places, start=1):
        page.add(place, "" if number == 1 else str(number))
    return {"data": page.traces, "layout": page.layout}


class _Page:
    """Collects traces, axes and words; places are pixels of the narrowest page."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.traces: list[dict[str, Any]] = []
        self.words: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {
            "template": {},
            "autosize": True,
            "height": height,
            "margin": {"l": MARGIN, "r": MARGIN, "t": 0, "b": 0, "autoexpand": False},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": TEXT, "family": "system-ui, Segoe UI, Roboto, Arial, sans-serif"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": TEXT, "activecolor": INKS["accent"]},
            "hovermode": "closest",
            "barmode": "overlay",
            "showlegend": False,
            "annotations": self.words,
            "shapes": [],
        }

    def right(self, x: float) -> float:
        """Return a share of the width inside the margins."""
        return min(1.0, max(0.0, (x - MARGIN) / (self.width - 2 * MARGIN)))

    def up(self, y: float) -> float:
        """Return a share of the height."""
        return min(1.0, max(0.0, 1 - y / self.height))

    def write(self, x: float, baseline: float, text: str, size: float) -> None:
        """Put words on the page, from `x` on."""
        self.words.append(
            {
                "xref": "paper",
                "yref": "paper",
                "x": self.right(x),
                "y": self.up(baseline + size * 0.35),
                "xanchor": "left",
                "yanchor": "bottom",
                "align": "left",
                "showarrow": False,
                "borderpad": 0,
                "text": text,
                "font": {"size": size},
            }
        )

    def add(self, place: Place, number: str) -> None:
        """Draw a panel on axes of its own."""
        panel = place.panel
        if place.title:
            self.write(place.x, place.y + SUBTITLE, f"<b>{inert(place.title)}</b>", SUBTITLE)
        for index, text in enumerate([*map(inert, place.note), *_key_rows(place)]):
            self.write(place.x, place.baseline + LINE * index, text, SMALL)
        down = y_scale(panel)
        names = [line_of(tick.label, SMALL, place.width * 0.3) for tick in down.ticks]
        widest = max((text_width(name, SMALL) for name in names), default=0.0)
        # Plotly writes numbers in its own way, and others when zoomed.
        indent = widest + 14 if panel.y.kind == "category" else max(widest + 14, 52.0)
        beside = remarks_width(place)
        across = x_scale(panel, place.width - indent - beside)
        left, right = place.x + indent, place.x + place.width - max(6.0, beside)
        right = left + plot_width(place, right - left)
        self.layout[f"xaxis{number}"] = _x_axis(across, right - left) | {
            "domain": [self.right(left), self.right(right)],
            "anchor": f"y{number}",
            "title": {"text": inert(across.title), "standoff": 6, "font": {"size": SMALL}},
            "showgrid": False,
            "showline": True,
            "linecolor": _LINE,
            "tickcolor": _LINE,
        }
        parted = panel.y.categories and panel.cells is None
        lanes = [tick.value - 0.5 for tick in down.ticks] if parted else []
        self.layout[f"yaxis{number}"] = _axis(down, names) | {
            "domain": [self.up(place.bottom), self.up(place.top)],
            "anchor": f"x{number}",
            "showgrid": not panel.y.categories,
            "gridcolor": _GRID,
            "minor": {"tickvals": lanes, "showgrid": bool(lanes), "gridcolor": _GRID},
        }
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        self.layout["shapes"] += _cell_lines(panel, number)
        if panel.cells is not None:
            self.traces.append(cell_trace(panel) | axes)
        for trace in bar_traces(panel.blocks, across, right - left):
            self.traces.append(trace | axes)
        for line in panel.series:
            for trace in line_traces(line, across, down, right - left):
                self.traces.append(trace | axes)
        for lane, (lines, remark) in enumerate(remarks_of(place)):
            self.write(right + 8, place.top, "<br>".join(map(inert, lines)), SMALL)
            self.words[-1] |= {"yref": f"y{number}", "y": lane, "yanchor": "middle"}
            self.words[-1]["font"] |= {"color": INKS.get(remark.ink, TEXT)}


def _key_rows(place: Place) -> list[str]:
    """Return the rows of a legend, each sign in its colour."""
    rows: dict[int, list[str]] = {}
    for key in place.keys:
        sign = f'<span style="color:{INKS[key.ink]}">{_KEY_SIGNS[key.style]}</span>'
        rows.setdefault(key.row, []).append(f"{sign} {inert(key.text)}")
    ramp = [] if place.panel.cells is None else [ramp_text(place.panel.cells)]
    return [*("&nbsp;&nbsp;&nbsp;".join(row) for row in rows.values()), *ramp]


def _x_axis(scale: Scale, width: float) -> dict[str, Any]:
    """Return an x axis; of very many categories, some have a name."""
    ticks, room = spaced(scale, width)
    if not scale.axis.categories:
        return _axis(scale, [tick.label for tick in ticks])
    names = [line_of(tick.label, SMALL, max(room - 4, 40)) for tick in ticks]
    return _axis(scale, names) | {
        "range": [scale.low, scale.high],
        "tickvals": [tick.value for tick in ticks],
    }


def _cell_lines(panel: Panel, number: str) -> list[dict[str, Any]]:
    """Return the lines between the parts of a table of cells, and those through empty rows."""
    if panel.cells is None:
        return []
    end = len(panel.y.categories) - 0.5
    lines = [(part - 0.5, 1.5) for part in panel.cells.parts]
    lines += [(row, 0.75) for row in struck(panel.cells)]
    found: list[dict[str, Any]] = []
    for at, width in lines:
        for ends in ((-0.5, end, at, at), (at, at, -0.5, end)):
            places = dict(zip(("x0", "x1", "y0", "y1"), ends, strict=True))
            style = {"type": "line", "line": {"color": TEXT, "width": width}}
            found.append({**style, **places, "xref": f"x{number}", "yref": f"y{number}"})
    return found


def _axis(scale: Scale, names: list[str]) -> dict[str, Any]:
    """Return what an x and a y axis have in common."""
    low, high = scale.low, scale.high
    common: dict[str, Any] = {
        "zeroline": False,
        "tickfont": {"size": SMALL},
        "automargin": False,
        "exponentformat": "e",
        "minexponent": 6,
        "nticks": len(scale.ticks) + 1,
        "ticks": "outside",
        "ticklen": 5,
        "tickcolor": "rgba(0,0,0,0)",
        "range": [low / scale.unit, high / scale.unit],
    }
    match scale.axis.kind:
        case "category":
            return common | {
                "range": [high, low],
                "tickvals": [tick.value for tick in scale.ticks],
                "ticktext": [inert(name) for name in names],
            }
        case "log":
            ends = [math.log10(low), math.log10(high)]
            step = max(1, math.ceil((ends[1] - ends[0]) / 5))
            return common | {
                "type": "log",
                "range": ends,
                "tick0": ends[0],
                "dtick": step,
                "minexponent": 3,
            }
        case "integer":
            values = [tick.value for tick in scale.ticks]
            step = round(values[1] - values[0]) if len(values) > 1 else 1
            return common | {"tick0": values[0], "dtick": step, "tickformat": ",d"}
    return common

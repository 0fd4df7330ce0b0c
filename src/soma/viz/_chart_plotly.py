"""Draws a chart with Plotly, as the JSON that Plotly reads; `_figure.py` makes the object.

It stands on the page's own colour, light or dark, so its inks read on both. Names are
escaped: Plotly takes markup, entities and formulas in every text.
"""

import math
from html import escape
from typing import Any

from soma.draw import Ink, text_width
from soma.viz._chart import Block, Blocks, Chart, Series
from soma.viz._chart_layout import LINE, MARGIN, SMALL, SUBTITLE, TITLE, Place, laid_out
from soma.viz._scale import Scale, clamped, x_scale, y_scale
from soma.viz._signs import signs
from soma.viz._words import line_of

_NARROWEST = 660.0  # pixels: words are cut to fit it, a wider page only gives more room
_TEXT, _LINE, _GRID = "#77808c", "#808a96", "rgba(128,138,150,0.25)"
# Half-way inks: a contrast of 3 or more on white and on #111.
_INKS: dict[Ink, str] = {
    "accent": "#4a7fe8",
    "good": "#2b9a5b",
    "cached": "#1d8fa6",
    "warning": "#b97a1a",
    "bad": "#e0483d",
    "series1": "#4a7fe8",
    "series2": "#d9712b",
    "series3": "#2b9a5b",
    "series4": "#c9509f",
    "series5": "#1d8fa6",
    "series6": "#8f69d6",
    "series7": "#a18512",
    "series8": "#7b8593",
}
_KEY_SIGNS = {"line": "━", "dashed": "╍", "plain": "■", "hollow": "▨", "failed": "■"}
_SYMBOLS = {"NaN": "x-thin-open", "Infinity": "triangle-up", "-Infinity": "triangle-down"}


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


def inert(text: str) -> str:
    """Return a text that Plotly shows as it is: no tag, no entity, no formula."""
    return escape(text, quote=False).replace("$", "&#36;")


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
            "font": {"color": _TEXT, "family": "system-ui, Segoe UI, Roboto, Arial, sans-serif"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": _TEXT, "activecolor": _INKS["accent"]},
            "hovermode": "closest",
            "barmode": "overlay",
            "showlegend": False,
            "annotations": self.words,
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
        across = x_scale(panel, place.width - indent)
        left, right = place.x + indent, place.x + place.width - 6
        self.layout[f"xaxis{number}"] = _axis(across, [tick.label for tick in across.ticks]) | {
            "domain": [self.right(left), self.right(right)],
            "anchor": f"y{number}",
            "title": {"text": inert(across.title), "standoff": 6, "font": {"size": SMALL}},
            "showgrid": False,
            "showline": True,
            "linecolor": _LINE,
            "tickcolor": _LINE,
        }
        lanes = [tick.value - 0.5 for tick in down.ticks] if panel.y.categories else []
        self.layout[f"yaxis{number}"] = _axis(down, names) | {
            "domain": [self.up(place.bottom), self.up(place.top)],
            "anchor": f"x{number}",
            "showgrid": not lanes,
            "gridcolor": _GRID,
            "minor": {"tickvals": lanes, "showgrid": bool(lanes), "gridcolor": _GRID},
        }
        for group in panel.blocks:
            self.traces.append(_bars(group, across, right - left, number))
        for line in panel.series:
            self.traces += _lines(line, across, down, right - left, number)


def _key_rows(place: Place) -> list[str]:
    """Return the rows of a legend, each sign in its colour."""
    rows: dict[int, list[str]] = {}
    for key in place.keys:
        sign = f'<span style="color:{_INKS[key.ink]}">{_KEY_SIGNS[key.style]}</span>'
        rows.setdefault(key.row, []).append(f"{sign} {inert(key.text)}")
    return ["&nbsp;&nbsp;&nbsp;".join(row) for row in rows.values()]


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


def _bars(group: Blocks, across: Scale, width: float, number: str) -> dict[str, Any]:
    ink = _INKS[group.ink]
    hollow = group.style == "hollow"
    marker: dict[str, Any] = {
        "color": "rgba(0,0,0,0)" if hollow else ink,
        "opacity": [block.strength for block in group.blocks],
        "line": {"color": ink, "width": 1},
    }
    if hollow:
        marker["pattern"] = {"shape": "/", "fgcolor": ink, "size": 5, "solidity": 0.3}
    return {
        "type": "bar",
        "orientation": "h",
        "name": inert(group.name),
        "base": [block.start / across.unit for block in group.blocks],
        "x": [(block.end - block.start) / across.unit for block in group.blocks],
        "y": [block.lane for block in group.blocks],
        "width": 0.62,
        "marker": marker,
        "text": [_fitting(block, across, width) for block in group.blocks],
        "textposition": "inside",
        "textangle": 0,
        "insidetextanchor": "start",
        "constraintext": "none",
        "textfont": {"size": SMALL, "color": _TEXT if hollow else "#ffffff"},
        "hoverinfo": "text",
        "hovertext": [_hover(block.tooltip) for block in group.blocks],
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
    }


def _fitting(block: Block, across: Scale, width: float) -> str:
    """Return the words of a block that is wide enough for them on every page."""
    room = (across.place(block.end) - across.place(block.start)) * width
    return inert(block.text) if text_width(block.text, SMALL) + 10 <= room else ""


def _lines(
    line: Series, across: Scale, down: Scale, width: float, number: str
) -> list[dict[str, Any]]:
    """Return a trace of the numbers, and one of the signs where there is none."""
    common = {
        "type": "scatter",
        "name": inert(line.name),
        "hoverinfo": "text",
        "cliponaxis": False,
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
    }
    ink = _INKS[line.ink]
    points = list(zip(line.x, line.y, strict=True))
    numbers = common | {
        "mode": "lines+markers" if len(points) <= 60 else "lines",
        "x": list(line.x),
        "y": [clamped(y) if math.isfinite(y) else None for _, y in points],
        "connectgaps": False,
        "line": {"color": ink, "width": 1.8, "dash": "dash" if line.dashed else "solid"},
        "marker": {"size": 4},
        "hovertext": [_hover(f"{line.name}\n{y:.6g} at {x:g}") for x, y in points],
    }
    odd = signs(line, across, width)
    if not odd:
        return [numbers]
    marker = {
        "symbol": [_SYMBOLS[sign.kind] for sign in odd],
        "color": ink,
        "size": 7,
        "line": {"color": ink, "width": 2},
    }
    return [
        numbers,
        common
        | {
            "mode": "markers",
            "x": [sign.x for sign in odd],
            "y": [down.high if sign.at_top else down.low for sign in odd],
            "marker": marker,
            "hovertext": [_hover(f"{line.name}\n{sign.kind} at {sign.x:g}") for sign in odd],
        },
    ]


def _hover(text: str) -> str:
    return "<br>".join(inert(line) for line in text.split("\n"))

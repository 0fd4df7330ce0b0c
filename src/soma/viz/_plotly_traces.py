"""What a chart is made of, each as a trace of Plotly: bars, lines, cells, words.

Names are escaped: Plotly takes markup, entities and formulas in every text.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from soma.draw import Ink
from soma.viz._block_words import Word, block_words
from soma.viz._cells_picture import MINUS, NEGATIVE, POSITIVE, SWATCHES, told
from soma.viz._chart import Block, Blocks, Cells, Panel, Series
from soma.viz._chart_layout import SMALL
from soma.viz._scale import Scale, clamped
from soma.viz._signs import signs

TEXT = "#77808c"
# Half-way inks: a contrast of 3 or more on white and on #111.
INKS: dict[Ink, str] = {
    "accent": "#4a7fe8",
    "line": "#808a96",
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
_SYMBOLS = {
    "NaN": "x-thin-open",
    "Infinity": "triangle-up",
    "-Infinity": "triangle-down",
    "0": "circle-open",
}


def inert(text: str) -> str:
    """Return a text that Plotly shows as it is: no tag, no entity, no formula."""
    return escape(text, quote=False).replace("$", "&#36;")


def bar_traces(groups: Sequence[Blocks], across: Scale, width: float) -> Iterator[dict[str, Any]]:
    """Return the blocks of each meaning, and the words that have room on any page."""

    def ends(block: Block) -> tuple[float, float]:
        return across.place(block.start) * width, across.place(block.end) * width

    words = list(block_words(groups, ends, width))
    on = {id(word.block): word.text for word in words if word.side == "on"}
    for group in groups:
        yield _bars(group, across, on)
    beside = [word for word in words if word.side != "on"]
    if beside:
        yield _words(beside, across)


def _bars(group: Blocks, across: Scale, on: Mapping[int, str]) -> dict[str, Any]:
    ink = INKS[group.ink]
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
        "text": [inert(on.get(id(block), "")) for block in group.blocks],
        "textposition": "inside",
        "textangle": 0,
        "insidetextanchor": "start",
        "constraintext": "none",
        "textfont": {"size": SMALL, "color": TEXT if hollow else "#ffffff"},
        "hoverinfo": "text",
        "hovertext": [_hover(block.tooltip) for block in group.blocks],
    }


def line_traces(line: Series, across: Scale, down: Scale, width: float) -> list[dict[str, Any]]:
    """Return a trace of the numbers, and one of the signs where there is none."""
    common = {
        "type": "scatter",
        "name": inert(line.name),
        "hoverinfo": "text",
        "cliponaxis": False,
    }
    ink = INKS[line.ink]
    points = list(zip(line.x, line.y, strict=True))
    numbers = common | {
        "mode": _mode(line),
        "x": list(line.x),
        "y": [clamped(y) if down.shows(y) else None for _, y in points],
        "connectgaps": False,
        "line": {"color": ink, "width": line.thickness, "dash": "dash" if line.dashed else "solid"},
        "marker": {"size": 4 if line.joined else 8, "color": ink},
        "hovertext": [_hover(f"{line.name}\n{y:.6g} at {x:g}") for x, y in points],
    }
    odd = signs(line, across, down, width)
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


def _mode(line: Series) -> str:
    if not line.joined:
        return "markers"
    return "lines+markers" if len(line.x) <= 60 else "lines"


def _words(words: Sequence[Word], across: Scale) -> dict[str, Any]:
    after = [word.side == "after" for word in words]
    ends = [
        word.block.end if behind else word.block.start
        for word, behind in zip(words, after, strict=True)
    ]
    return {
        "type": "scatter",
        "mode": "text",
        "x": [end / across.unit for end in ends],
        "y": [word.block.lane for word in words],
        "text": [inert(f" {word.text} ") for word in words],
        "textposition": ["middle right" if behind else "middle left" for behind in after],
        "textfont": {"size": SMALL, "color": TEXT},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def cell_trace(panel: Panel) -> dict[str, Any]:
    """Return a table of cells, from one colour over nothing to the other."""
    cells = panel.cells or Cells(rows=())
    return {
        "type": "heatmap",
        "z": [[None if math.isnan(value) else value for value in row] for row in cells.rows],
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[0, _clear(NEGATIVE, 1)], [0.5, _clear(NEGATIVE, 0)],
                       [0.5, _clear(POSITIVE, 0)], [1, _clear(POSITIVE, 1)]],
        "showscale": False,
        "hoverongaps": False,
        "hoverinfo": "text",
        "text": [
            [_hover(told(panel, row, column, value)) for column, value in enumerate(values)]
            for row, values in enumerate(cells.rows)
        ],
    }  # fmt: skip


def ramp_text(cells: Cells) -> str:
    """Return which colour is which number, as a line of words."""
    squares = "".join(
        f'<span style="color:{_clear(POSITIVE if value > 0 else NEGATIVE, abs(value))}">■</span>'
        for value in SWATCHES
    )
    empty = any(math.isnan(value) for row in cells.rows for value in row)
    return f"{MINUS}1 {squares} 1" + (f"&nbsp;&nbsp;&nbsp;┼ {inert(cells.empty)}" if empty else "")


def _clear(ink: Ink, strength: float) -> str:
    red, green, blue = (int(INKS[ink][at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{strength:g})"


def _hover(text: str) -> str:
    return "<br>".join(inert(line) for line in text.split("\n"))

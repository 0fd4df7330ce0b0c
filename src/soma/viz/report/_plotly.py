"""Puts the Plotly that is installed into a report, compressed; the page unpacks it."""

import gzip
from base64 import b64encode
from collections.abc import Mapping

from markupsafe import Markup

from soma._extras import require
from soma.viz._chart import Chart
from soma.viz._chart_plotly import chart_json
from soma.viz.report._data import inert_json

# The picture that `toImage` makes passes through an address that the page's policy refuses.
_CONFIG = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtons": [["zoom2d", "pan2d", "resetScale2d"]],
}


def packed_plotly() -> Markup:
    """Return plotly.js as base64 of gzip.

    Raises:
        MissingExtra: Plotly is not installed.
    """
    source: str = require("plotly.offline", extra="viz").get_plotlyjs()
    packed = gzip.compress(source.encode(), compresslevel=9, mtime=0)
    return Markup(b64encode(packed).decode())  # noqa: S704 - letters, digits, `+`, `/` and `=`


def figures_json(charts: Mapping[str, Chart]) -> Markup:
    """Return charts as Plotly reads them, by the key of the figure that each replaces."""
    return inert_json(
        {key: {**chart_json(chart), "config": _CONFIG} for key, chart in charts.items()}
    )

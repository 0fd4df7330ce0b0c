"""What `plot_…` gives: a chart that a notebook shows, and that is saved as a file."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from soma._extras import require
from soma.draw import printable, svg
from soma.errors import InvalidInput, MissingExtra
from soma.files import write_atomically
from soma.viz._chart import Chart
from soma.viz._chart_picture import WIDTH, chart_picture
from soma.viz._chart_plotly import chart_json

_PLOTLY = "application/vnd.plotly.v1+json"
_CONFIG = {
    "displaylogo": False,
    "responsive": True,
    # Without those that would send the figure somewhere.
    "modeBarButtons": [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
}


class Figure:
    """A figure about a run.

    A notebook draws it with Plotly where that is installed, and as static SVG everywhere else.

    >>> from soma.viz import Chart, Figure
    >>> Figure(Chart(title="Metrics of first try", panels=()))
    Figure('Metrics of first try')
    """

    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    def to_svg(self, *, width: float = WIDTH) -> str:
        """Return the figure as one SVG element that needs nothing from outside."""
        return svg(chart_picture(self.chart, width))

    def to_plotly(self) -> Any:
        """Return the figure as a `plotly.graph_objects.Figure`, to change or to show.

        Raises:
            MissingExtra: Plotly is not installed.
        """
        return require("plotly.graph_objects", extra="viz").Figure(chart_json(self.chart))

    def save(self, path: str | os.PathLike[str], *, width: float = WIDTH) -> None:
        """Write the figure to a file, by its suffix: `.svg`, `.html` or `.png`.

        HTML holds all of Plotly and makes no request. PNG needs Chrome or Chromium.

        Raises:
            InvalidInput: the suffix is another, or the folder is not there.
            MissingExtra: what draws HTML or PNG is not installed.
        """
        target = Path(path).absolute()
        if not target.parent.is_dir():
            raise InvalidInput(f"there is no folder {target.parent}; make it first.")
        match target.suffix.lower():
            case ".svg":
                content = self.to_svg(width=width).encode()
            case ".html":
                content = self._html().encode()
            case ".png":
                content = self._png(width)
            case suffix:
                raise InvalidInput(
                    f"a figure cannot be saved as {suffix or 'a file without suffix'!r}; "
                    "take `.svg`, `.html` or `.png`."
                )
        write_atomically(str(target), [content])

    def _html(self) -> str:
        page: str = self.to_plotly().to_html(include_plotlyjs=True, config=_CONFIG)
        return page

    def _png(self, width: float) -> bytes:
        """Let kaleido draw; it drives a Chrome that pip does not bring."""
        kaleido = require("kaleido", extra="png")
        figure = self.to_plotly()
        size = {"width": round(width), "height": figure.layout.height, "scale": 2}
        try:
            image: bytes = kaleido.calc_fig_sync(
                figure.to_dict(),
                opts={"format": "png", **size},
                kopts={"mathjax": False},  # it would be fetched from the net
            )
        except Exception as error:
            if "chrome" not in f"{type(error).__name__} {error}".lower():
                raise
            raise MissingExtra(
                "a PNG is drawn by Chrome or Chromium, and none was found. Install one, on Debian "
                "with: apt install chromium; or save as `.svg`, which needs neither."
            ) from error
        return image

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return the figure in all its forms, so that no notebook shows an empty cell."""
        bundle: dict[str, Any] = {"image/svg+xml": self.to_svg(), "text/plain": repr(self)}
        if find_spec("plotly") is not None:
            bundle[_PLOTLY] = chart_json(self.chart) | {"config": _CONFIG}
        return bundle

    def __repr__(self) -> str:
        return f"Figure({printable(self.chart.title)!r})"

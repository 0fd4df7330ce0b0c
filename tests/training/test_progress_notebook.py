"""A fit in a notebook shows one line that fills up, in a real kernel."""

from html.parser import HTMLParser

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

pytestmark = [pytest.mark.process, pytest.mark.slow]

CELL = """
import torch
from torch import nn
from soma import DifferentiableFilter, Graph

class Dense(DifferentiableFilter):
    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], 2)

g = Graph(cache=None)
g.node("<b>head", Dense())
g.fit(torch.randn(64, 4), torch.randn(64, 2), epochs=3, batch_size=16{options});
"""


def outputs(options: str = "") -> list[dict]:
    """Run the cell in a kernel and return what it shows."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(CELL.format(options=options))]
    )
    nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    return notebook.cells[0].outputs


class Progress(HTMLParser):
    """Reads the bar and the tags of a line."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.bar: dict[str, str | None] = {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "progress":
            self.bar = dict(attrs)


def test_one_line_is_left_and_it_is_full() -> None:
    """The cell ends with a full bar and the last loss; names are no markup."""
    (shown,) = [one for one in outputs() if "text/html" in one.get("data", {})]
    line = Progress(shown["data"]["text/html"])

    assert (line.bar["value"], line.bar["max"]) == ("12", "12")
    assert "epoch 3/3 · loss" in shown["data"]["text/plain"]
    assert line.tags == ["div", "progress", "span"]


def test_progress_false_shows_nothing() -> None:
    """`progress=False` leaves the cell empty."""
    assert outputs(", progress=False") == []

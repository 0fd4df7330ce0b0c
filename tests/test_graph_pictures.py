"""What a graph shows of itself, and what a run keeps of its inside."""

from pathlib import Path
from xml.dom.minidom import parseString

import pytest
import torch
from torch import nn

import soma
from soma import DifferentiableFilter, Filter, Graph


class Plain(Filter):
    """Passes on."""

    def forward(self, x, state):
        return x


class Branched(DifferentiableFilter):
    """Two branches, of which one is detached."""

    def build_module(self, input_shape):
        return nn.ModuleDict({"kept": nn.Linear(4, 2), "cut": nn.Linear(4, 2)})

    def forward(self, x, state=None):
        return self._module["kept"](x) + self._module["cut"](x).detach(), {}


def test_a_graph_is_the_same_picture_everywhere() -> None:
    """A notebook shows `to_svg`, `print` shows `to_text`; the other two are text."""
    g = Graph.somatize(Plain() >> (Plain() | Plain()))

    assert g._repr_html_() == g.to_svg()
    assert str(g) == g.to_text()
    assert g.to_mermaid().startswith("flowchart")
    assert g.to_graphviz().startswith("digraph")


@pytest.mark.parametrize("count", [0, 1, 60])
def test_graphs_of_any_size_are_drawn(count: int) -> None:
    """A graph without nodes is a picture too."""
    g = Graph()
    for number in range(count):
        g.node(f"n{number}", Plain())
        if number:
            g.connect(f"n{number - 1}", f"n{number}")

    assert parseString(g.to_svg()).documentElement.tagName == "svg"


def test_a_run_keeps_what_flowed_inside_and_where_it_was_cut(tmp_path: Path) -> None:
    """The inside of a module is there after training, with its cut edge."""
    g = Graph(cache=None)
    g.node("two", Branched())
    with g.track_run("inside", root=tmp_path) as run:
        g.fit(torch.randn(16, 4), torch.randn(16, 2), epochs=1, progress=False)
    view = soma.RunView(run.dir)

    assert "detach" in view.to_svg(node="two")
    assert "two" in view.to_svg()


def test_a_run_without_modules_has_no_inside(tmp_path: Path) -> None:
    """Asking for it says what there is."""
    g = Graph.somatize(Plain(), cache=None)
    with g.track_run("plain", root=tmp_path) as run:
        g.forward(1)

    with pytest.raises(soma.errors.NotRecorded, match="plain"):
        soma.RunView(run.dir).to_svg(node="plain")

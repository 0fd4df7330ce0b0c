"""A graph comes back from its file as it was."""

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import soma
from soma import Filter, Graph
from tests.checkpoint.filters import Center, Holds, Scale, Settings, Total, loaded, members


def test_states_come_back(tmp_path: Path) -> None:
    """A fitted graph answers after `load` as it did before."""
    g = Graph.somatize(Scale() >> Center() >> Scale(factor=0.5)).fit([1.0, 2.0, 6.0])
    h = loaded(g, tmp_path)

    assert h.forward([1.0, 4.0]) == g.forward([1.0, 4.0])
    assert np.array_equal(h.get_node_state("center")["table"], np.arange(2_000.0))


def test_an_unfitted_graph_comes_back_unfitted(tmp_path: Path) -> None:
    """Without a state there is none afterwards either."""
    with pytest.raises(soma.errors.NotFitted, match="`center` learns"):
        loaded(Graph.somatize(Center()), tmp_path).forward([1.0])


def test_a_state_that_is_none_comes_back(tmp_path: Path) -> None:
    """A fit that returned None counts as fitted."""

    class Nothing(Filter):
        def fit(self, x, y=None):
            return None

        def forward(self, x, state):
            return x

    h = loaded(Graph.somatize(Nothing()).fit([1]), tmp_path)

    assert h.forward([1]) == [1]


@pytest.mark.parametrize(
    "value",
    [
        -0.0, 2**80, "é\ud800", b"\0", (1, [2, {"a": {3}}]), date(2020, 1, 2), 1 + 2j,
        np.arange(3_000, dtype=">i4").reshape(2, -1), Settings(0.5, ("a",)),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_arguments_are_any_plain_data(tmp_path: Path, value: Any) -> None:
    """Arguments keep their types and values, wherever they stand."""
    h = loaded(Graph.somatize(Holds(value, [value], named=value)), tmp_path)
    filter = h.filter("holds")

    assert repr(filter.values) == repr((value, [value]))
    assert repr(filter.more["named"]) == repr(value)
    assert type(filter.values[0]) is type(value)


def test_arguments_may_be_filters(tmp_path: Path) -> None:
    """A filter inside a filter comes back with its arguments."""
    h = loaded(Graph.somatize(Holds([Scale(factor=3)], inner=Holds(Scale(4)))), tmp_path)
    filter = h.filter("holds")

    assert filter.values[0][0].factor == 3
    assert filter.more["inner"].values[0].factor == 4


def test_arguments_may_be_classes_that_are_allowed(tmp_path: Path) -> None:
    """A class or a function as an argument is stored by name, and needs leave to come back."""
    Graph.somatize(Holds(Settings, members)).save(tmp_path / "g.soma")
    with pytest.raises(soma.errors.CheckpointError, match=r"classes=\[Settings\]"):
        Graph.load(tmp_path / "g.soma")
    h = Graph.load(tmp_path / "g.soma", classes=[Settings, members])

    assert h.filter("holds").values == (Settings, members)


def test_what_was_changed_after_construction_comes_back(tmp_path: Path) -> None:
    """Public attributes are those of now; what cannot be stored is left to the constructor."""
    scale = Scale(factor=2)
    scale.factor, scale.note, scale.stream = 7, [1], open
    h = loaded(Graph.somatize(scale), tmp_path)

    assert (h.filter("scale").factor, h.filter("scale").note) == (7, [1])
    assert not hasattr(h.filter("scale"), "stream")


def test_names_seeds_edges_and_ids_come_back(tmp_path: Path) -> None:
    """A fan-in reads in the same order, and ids may be odd."""
    g = Graph(name="my graph", seed=5)
    for id in ("b", "a&b", "é✓.<script>"):
        g.node(id, Scale())
    g.node("all", Total())
    for id in ("é✓.<script>", "b", "a&b"):
        g.connect(id, "all")
    h = loaded(g, tmp_path)

    assert (h.name, h._runner.seed) == ("my graph", 5)
    assert (h.edges(), h.filter_ids(), h.leaves()) == (g.edges(), g.filter_ids(), g.leaves())
    assert h.forward([1]) == ["é✓.<script>", "b", "a&b"]


def test_inlined_graphs_keep_their_names(tmp_path: Path) -> None:
    """The name of a graph inside can still be linked to after a load."""
    inner = Graph.somatize(Scale() | Center(), name="inner")
    h = loaded(Graph.somatize(inner >> Total()), tmp_path)
    h.node("more", Total())
    h.connect("inner", "more")

    assert h.edges()[-2:] == [("inner.scale", "more"), ("inner.center", "more")]


def test_nodes_may_be_added_afterwards(tmp_path: Path) -> None:
    """A loaded graph is a graph like any other."""
    h = loaded(Graph.somatize(Scale() >> Scale()), tmp_path)
    h.connect("scale_2", h.node(Scale()))

    assert h.filter_ids() == ["scale", "scale_2", "scale_3"]
    assert h.forward([1]) == [8]


def test_extra_data_comes_along(tmp_path: Path) -> None:
    """`extra` is any plain data, and stands on the loaded graph."""
    extra = {"epoch": 3, "labels": ["a", "b"], "big": np.ones(5_000)}
    Graph.somatize(Scale()).save(tmp_path / "g.soma", extra=extra)
    h = Graph.load(tmp_path / "g.soma")

    assert (h.extra["epoch"], h.extra["labels"], h.extra["big"].sum()) == (3, ["a", "b"], 5_000)
    assert Graph().extra is None


def test_equal_graphs_make_equal_files(tmp_path: Path) -> None:
    """No time and no name of a machine gets into a file."""
    for name in ("one", "other"):
        Graph.somatize(Scale() >> Center()).fit([1.0, 2.0]).save(tmp_path / name)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_saved_graph_goes_on_as_it_was(tmp_path: Path) -> None:
    """`save` returns the graph and changes nothing about it."""
    g = Graph.somatize(Scale())

    assert g.save(tmp_path / "g.soma") is g
    assert g._trainer is None


def test_an_estimator_comes_back_in_a_fresh_process(tmp_path: Path) -> None:
    """`soma.sk` needs no leave: its classes are ours, its state is read by skops."""
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    pytest.importorskip("skops")
    g = Graph.somatize(soma.sk(preprocessing.StandardScaler())).fit([[0.0], [2.0]])
    g.save(tmp_path / "g.soma")
    code = (
        "from soma import Graph; g = Graph.load('g.soma');"
        "print(g.forward([[4.0]]), type(g.filters()[0][1]).__name__)"
    )

    assert fresh(tmp_path, code) == "[[3.]] StandardScaler"


def test_plain_graphs_need_no_torch(tmp_path: Path) -> None:
    """Neither `save` nor `load` of a graph without modules loads torch."""
    (tmp_path / "mine.py").write_text(
        "from soma import Filter\nclass Same(Filter):\n    def forward(self, x, state): return x\n"
    )
    code = (
        "import sys, mine; from soma import Graph; Graph.somatize(mine.Same()).save('g.soma');"
        "print(Graph.load('g.soma').forward([1]), 'torch' in sys.modules)"
    )

    assert fresh(tmp_path, code) == "[1] False"


def test_classes_of_a_script_are_found_where_they_went(tmp_path: Path) -> None:
    """What `__main__` saved loads in another script that has the class under its own name."""
    (tmp_path / "mine.py").write_text(
        "from soma import Filter, Graph\n"
        "class Plus(Filter):\n"
        "    def forward(self, x, state): return [one + self.by for one in x]\n"
        "if __name__ == '__main__': Graph.somatize(Plus(by=2)).save('g.soma')\n"
    )
    fresh(tmp_path, "import runpy; runpy.run_path('mine.py', run_name='__main__')")
    code = (
        "import mine; from soma import Graph;"
        "print(Graph.load('g.soma', classes=[mine.Plus]).forward([1]))"
    )

    assert fresh(tmp_path, code) == "[3]"


def fresh(folder: Path, code: str) -> str:
    """Run code in a new process, and return what it prints."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@st.composite
def graphs(draw: Any) -> Graph:
    """Any graph of a few nodes with links that lead forward."""
    text = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
    ids = draw(st.lists(text.filter(lambda id: not set(id) & set("/[]")), min_size=1, unique=True))
    g = Graph(name=draw(st.text("abc ", min_size=1)), seed=draw(st.none() | st.integers(0, 2**63)))
    for number, id in enumerate(ids):
        value = draw(st.recursive(st.integers() | st.floats() | st.text(), st.lists, max_leaves=4))
        g.node(id, draw(st.sampled_from([Total(), Center(), Holds(value, a=[value])])))
        for source in draw(st.lists(st.sampled_from(ids[: number + 1]), unique=True)):
            if source != id:
                g.connect(source, id)
    for id in draw(st.lists(st.sampled_from(ids), unique=True)):
        g.set_node_state(id, draw(st.dictionaries(st.text(), st.floats() | st.binary())))
    return g


@settings(max_examples=60)
@given(graphs())
def test_any_graph_comes_back(tmp_path_factory: pytest.TempPathFactory, g: Graph) -> None:
    """Structure, arguments and states of any graph are the same after a load."""
    h = loaded(g, tmp_path_factory.mktemp("graph"))

    assert (h.name, h._runner.seed, h.filter_ids()) == (g.name, g._runner.seed, g.filter_ids())
    assert h.edges() == g.edges()
    assert repr(h.filters()) == repr(g.filters())
    assert repr(h.state()) == repr(g.state())

"""What a graph with a cache runs, and what it does not."""

import random
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from soma import DifferentiableFilter, Filter, Graph, Inputs, why
from soma.engine._seeding import generator_marks
from soma.errors import SomaWarning
from soma.testing import Recording


class Counting(Filter):
    """Counts the runs of every node, by the name it was given."""

    _cache_version = "1"
    runs: ClassVar[list[str]] = []

    def forward(self, x, state):
        Counting.runs.append(self.name)
        return x + self.by


class Learning(Counting):
    def fit(self, x, y=None):
        Counting.runs.append(f"fit {self.name}")
        return sum(x) / len(x) + (sum(y) if y else 0)

    def forward(self, x, state):
        Counting.runs.append(self.name)
        return [value - state for value in x]


class Rounding(Counting):
    def forward(self, x, state):
        Counting.runs.append(self.name)
        return round(x)


class Total(Filter):
    def forward(self, x, state):
        return float(x.sum())


class Dense(DifferentiableFilter):
    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], 2)


@pytest.fixture(autouse=True)
def no_runs() -> None:
    Counting.runs.clear()


def test_a_second_forward_runs_nothing() -> None:
    """Nor does one of another graph with the same filters."""
    for _ in range(2):
        g = Graph.somatize(Counting(name="a", by=1) >> Counting(name="b", by=2))
        assert (g.forward(1), g.forward(1)) == (4, 4)

    assert Counting.runs == ["a", "b"]


def test_names_of_nodes_and_their_place_do_not_count() -> None:
    """The first half of another graph is known already."""
    Graph.somatize(Counting(name="a", by=1) >> Counting(name="b", by=2)).forward(1)
    g = Graph()
    g.node("other", Counting(name="a", by=1))
    g.node("new", Counting(name="c", by=3))
    g.connect("other", "new")

    assert g.forward(1) == 5
    assert Counting.runs == ["a", "b", "c"]


def test_an_equal_output_of_a_changed_node_stops_there() -> None:
    """What comes after it is keyed by what it gives, not by what it is."""
    for by in (1.0, 1.25):
        expression = Counting(name="a", by=by) >> Rounding(name="round") >> Counting(name="z", by=1)
        assert Graph.somatize(expression).forward(1.0) == 3

    assert Counting.runs == ["a", "round", "z", "a", "round"]


def test_a_warm_forward_reads_a_record_a_node_and_one_value() -> None:
    """Values in between stay where they are."""
    array = np.arange(4_000.0)
    expression = Counting(name="a", by=1) >> Counting(name="b", by=2) >> Counting(name="c", by=3)
    Graph.somatize(expression).forward(array)
    g = Graph.somatize(
        Counting(name="a", by=1) >> Counting(name="b", by=2) >> Counting(name="c", by=3)
    )
    store = g._runner.memory.cache.store
    before = store.counts.blobs_read
    output = g.forward(array)

    assert np.array_equal(output, array + 6)
    assert Counting.runs == ["a", "b", "c"]
    assert store.counts.blobs_read - before == 1


def test_a_fit_and_the_forward_after_it_share_their_work() -> None:
    """A fit runs the whole graph once, so the forward on the same data is warm."""
    g = Graph.somatize(Learning(name="m"))
    g.fit([1.0, 3.0])
    assert g.forward([1.0, 3.0]) == [-1.0, 1.0]
    Graph.somatize(Learning(name="m")).fit([1.0, 3.0])

    assert Counting.runs == ["fit m", "m"]


@pytest.mark.parametrize(("x", "y"), [([1.0, 5.0], None), ([1.0, 3.0], [1.0, 0.0])])
def test_other_data_or_labels_are_fitted_anew(x: list[float], y: list[float] | None) -> None:
    """Both are a part of the key of what was learned."""
    Graph.somatize(Learning(name="m")).fit([1.0, 3.0])
    Counting.runs.clear()
    Graph.somatize(Learning(name="m")).fit(x, y)

    assert "fit m" in Counting.runs


def test_two_identical_nodes_run_once() -> None:
    """Also when they run side by side."""
    for executor in (None, "threads"):
        g = Graph.somatize(
            Counting(name="n", by=1) | Counting(name="n", by=1), executor=executor, cache="memory"
        )
        assert g.forward(1) == {"counting": 2, "counting_2": 2}

    assert Counting.runs == ["n", "n"]


def test_a_graph_without_a_cache_runs_everything() -> None:
    """None is no cache, wherever the default one is."""
    for _ in range(2):
        Graph.somatize(Counting(name="a", by=1), cache=None).forward(1)

    assert Counting.runs == ["a", "a"]


class Doubled(Dense):
    """Shows that its own `forward` runs."""

    def forward(self, x, state=None):
        Counting.runs.append("module")
        return 2 * self._module(x), {}


def test_a_frozen_module_is_keyed_by_its_weights() -> None:
    """Live weights are never stored; training and freezing again gives another key."""
    x = torch.randn(8, 3)
    g = Graph.somatize(Doubled())
    g.materialize(x)
    Counting.runs.clear()
    g.forward(x)
    g.forward(x)
    assert len(Counting.runs) == 2

    first = g.freeze().forward(x)
    assert torch.equal(g.forward(x), first)
    g.train()
    with torch.no_grad():
        next(g.parameters()).add_(1.0)
    assert not torch.equal(g.freeze().forward(x), first)
    assert len(Counting.runs) == 4


def test_a_module_gives_each_kind_of_value_its_own_answer() -> None:
    """A list is not answered with what was stored for a tensor."""
    x = torch.ones(4, 3)
    g = Graph.somatize(Dense())
    g.materialize(x)
    g.freeze()
    kinds = [type(g.forward(given)) for given in (x, x.numpy(), x.tolist()) for _ in range(2)]

    assert kinds == [torch.Tensor] * 2 + [np.ndarray] * 2 + [list] * 2


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64, np.random.SFC64])
def test_what_draws_from_a_global_generator_is_noticed(kind: type) -> None:
    """A claim of determinism that does not hold is told, whichever generator NumPy uses."""

    class Noise(Filter):
        def forward(self, x, state):
            return x + np.random.rand()

    g = Graph.somatize(Noise())
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(kind())
    try:
        with pytest.warns(SomaWarning, match="`noise`: it draws from a global random generator"):
            first = g.forward(1.0)
        with pytest.warns(SomaWarning, match="global random generator"):
            assert g.forward(1.0) != first
    finally:
        np.random.set_bit_generator(before)


@pytest.mark.parametrize(
    "draw", [random.random, np.random.rand, lambda: torch.rand(1)], ids=["python", "numpy", "torch"]
)
def test_every_draw_moves_the_marks(draw: Callable[[], object]) -> None:
    """As many draws as a generator keeps words bring another mark too; no draw brings none."""
    marks = [generator_marks()]
    assert generator_marks() == marks[0]
    for _ in range(1_300):
        draw()
        marks.append(generator_marks())

    assert len(set(marks)) == len(marks)


def test_events_tell_what_came_from_the_cache() -> None:
    """A listener hears of every node, run or not, and a tap sees its value."""
    g = Graph.somatize(Counting(name="a", by=1) >> Counting(name="b", by=2))
    g.forward(1)
    recording = Recording()
    with recording.of(g):
        g.forward(1)

    assert recording.outputs == [("counting", 2), ("counting_2", 4)]
    assert [one.cached for one in recording.events if hasattr(one, "cached")] == [True, True]


def test_the_same_object_is_hashed_once() -> None:
    """However many roots read it."""
    data = np.zeros(1_000)
    g = Graph.somatize(Counting(name="a", by=1) | Counting(name="b", by=2))
    together = g.forward(data)
    apart = g.forward(Inputs(counting=data, counting_2=data.copy()))

    assert all(np.array_equal(together[name], apart[name]) for name in together)
    assert Counting.runs == ["a", "b"]


def test_an_array_in_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    """A memory map is found again as another map of the same numbers, until they change."""
    np.save(tmp_path / "x.npy", np.arange(4.0))
    first, second = (np.load(tmp_path / "x.npy", mmap_mode="r+") for _ in range(2))
    g = Graph.somatize(Total(), cache="memory")
    assert g.forward(first) == g.forward(second) == 6
    assert why(g, "total") == "`total` did not run: its answer was stored"

    first[0] = 10
    assert g.forward(second) == 16


def test_a_copy_of_a_graph_shares_its_cache() -> None:
    """What one of them has computed the other finds."""
    g = Graph.somatize(Counting(name="a", by=1), cache="memory")
    g.forward(1)
    assert deepcopy(g).forward(1) == 2

    assert Counting.runs == ["a"]


def test_a_state_that_was_asked_for_may_be_written_to() -> None:
    """It is a copy, so the graph and its keys stay as they were."""

    class Mean(Filter):
        def fit(self, x, y=None):
            return {"mean": sum(x) / len(x)}

        def forward(self, x, state):
            return [value - state["mean"] for value in x]

    g = Graph.somatize(Mean()).fit([1.0, 3.0])
    g.get_node_state("mean")["mean"] = 100.0

    assert g.forward([1.0, 3.0]) == [-1.0, 1.0]

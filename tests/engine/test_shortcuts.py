"""Inputs seen before lead straight to stored answers, and only while all else is as it was."""

from pathlib import Path
from shutil import rmtree

import pytest
import torch

from soma import Filter, Graph
from soma.cache import MemoryStore


class Add(Filter):
    """Adds a number, and counts its calls."""

    _cache_version = "1"  # the count is no part of what it does
    calls = 0

    def forward(self, x, state=None):
        Add.calls += 1
        return x + self.by


class Noise(Filter):
    """Draws."""

    _deterministic = False

    def forward(self, x, state=None):
        return x + torch.rand(())


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    Add.calls = 0


def chain(cache: object, runs: int = 2) -> Graph:
    """Three additions in a row, whose answers for 1 are known."""
    g = Graph.somatize(Add(by=1) >> Add(by=2) >> Add(by=3), cache=cache)
    for _ in range(runs):
        g.forward(1)
    return g


def test_a_shortcut_reads_the_leaf_alone() -> None:
    """The third run of one input asks the store for one record."""
    store = MemoryStore()
    g = chain(store)
    asked = store.counts.hits

    assert g.forward(1) == 7
    assert store.counts.hits - asked == 1


@pytest.mark.parametrize("runs", [2, 4])
@pytest.mark.parametrize("value", [10, 2.0, True])
def test_another_attribute_takes_no_shortcut(value: object, runs: int) -> None:
    """An attribute set between two runs is computed with, also one that equals the old one."""
    g = chain("memory", runs)
    g.filter("add_2").by = value
    answer = g.forward(1)

    assert answer == 5 + value
    assert type(answer) is type(1 + value)


@pytest.mark.parametrize("runs", [2, 4])
def test_other_code_takes_no_shortcut(runs: int) -> None:
    """A method given to a class between two runs is computed with."""

    class Two(Filter):
        def forward(self, x, state=None):
            return x + 2

    g = Graph.somatize(Two() >> Two(), cache="memory")
    answers = [g.forward(1) for _ in range(runs)]
    Two.forward = lambda self, x, state=None: x + 3

    assert answers == [5] * runs
    assert g.forward(1) == 7


@pytest.mark.parametrize("runs", [2, 4])
def test_a_node_that_says_it_draws_takes_no_shortcut(runs: int) -> None:
    """`_deterministic = False`, said of one object, is heeded at the next run."""
    g = chain("memory", runs)
    before = Add.calls
    g.filter("add").__dict__["_deterministic"] = False
    g.forward(1)

    assert Add.calls > before


def test_what_is_gone_is_computed_again(tmp_path: Path) -> None:
    """A shortcut to an answer that was deleted is not taken."""
    g = chain(tmp_path)
    rmtree(tmp_path / "records")
    before = Add.calls

    assert g.forward(1) == 7
    assert Add.calls == before + 3


def test_each_seed_has_its_shortcut() -> None:
    """Two seeds give two answers, both when they are new and when they are known."""
    g = Graph.somatize(Noise(), cache="memory")
    answers = [[g.forward(0, seed=seed) for seed in (1, 2)] for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] != answers[0][1]


def test_settings_of_torch_have_their_shortcuts() -> None:
    """An answer given under another default dtype is another answer."""
    g = chain("memory")
    before = Add.calls
    torch.set_default_dtype(torch.float64)
    try:
        g.forward(1)
    finally:
        torch.set_default_dtype(torch.float32)

    assert Add.calls == before + 3


def test_two_leaves_come_by_name() -> None:
    """A shortcut to several leaves gives the answer of each."""
    g = Graph.somatize(Add(by=1) >> (Add(by=2) | Add(by=3)), cache="memory")
    first = [g.forward(torch.zeros(2)) for _ in range(3)][-1]
    first["add_2"].fill_(9)

    assert g.forward(torch.zeros(2))["add_2"].tolist() == [3, 3]


def test_a_state_set_by_hand_takes_no_shortcut() -> None:
    """`set_node_state` between two runs is computed with."""

    class Shift(Filter):
        def fit(self, x, y=None):
            return 1

        def forward(self, x, state):
            return x + state

    g = Graph.somatize(Shift(), cache="memory").fit(0)
    answers = [g.forward(1) for _ in range(4)]
    g.set_node_state("shift", 5)

    assert (answers, g.forward(1)) == ([2, 2, 2, 2], 6)

"""A seed makes the nodes that draw repeatable, and touches nobody else's numbers."""

import random

import numpy as np
import pytest
import torch

from soma import Filter, Graph
from soma.engine import generators_kept, seeded
from tests.engine.filters import Draws, Pairs, Same
from tests.engine.fresh import fresh_python


class DrawsToo(Draws):
    """Draws in the same way under another name."""


class DrawsArrays(Filter):
    """Draws from NumPy's and torch's generators too."""

    _deterministic = False

    def forward(self, x, state):
        return random.random(), np.random.rand(), torch.rand(()).item()


class Claims(Filter):
    """Draws, and claims that it does not."""

    def forward(self, x, state):
        return random.random()


class LearnsDraws(Filter):
    """Draws what it learns, and what it answers."""

    _deterministic = False

    def fit(self, x, y=None):
        return random.random()

    def forward(self, x, state):
        return state, random.random()


def test_the_seed_of_the_graph_repeats_a_run() -> None:
    """Every forward draws the same, and so does another graph."""
    g = Graph.somatize(DrawsArrays(), seed=1)

    assert g.forward(0) == g.forward(0) == Graph.somatize(DrawsArrays(), seed=1).forward(0)
    assert g.forward(0) != Graph.somatize(DrawsArrays(), seed=2).forward(0)


def test_the_seed_of_a_call_wins() -> None:
    """For that call only."""
    g = Graph.somatize(Draws(), seed=1)
    first = g.forward(0)

    assert g.forward(0, seed=2) == Graph.somatize(Draws()).forward(0, seed=2) != first
    assert g.forward(0) == first


def test_the_seed_of_fit_repeats_what_is_learned() -> None:
    """The call's own, or else the graph's."""
    states = [
        Graph.somatize(LearnsDraws(), seed=seed)
        .fit([1], seed=of_call)
        .get_node_state("learns_draws")
        for seed, of_call in [(1, None), (None, 1), (2, 1), (2, None)]
    ]

    assert states[0] == states[1] == states[2] != states[3]


@pytest.mark.parametrize("seed", [0, -1, 2**64, np.int64(3)])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    """Zero too is one, and not the absence of one."""
    g = Graph.somatize(DrawsArrays())

    assert g.forward(0, seed=seed) == g.forward(0, seed=int(seed))


def test_without_a_seed_nodes_draw_from_the_running_generator() -> None:
    """As they would outside a graph."""
    random.seed(5)
    expected = [random.random(), random.random()]
    random.seed(5)
    g = Graph.somatize(Draws())

    assert [g.forward(0), g.forward(0)] == expected


def test_nodes_of_one_class_draw_different_numbers() -> None:
    """Each has a seed of its own."""
    g = Graph.somatize((Draws() | Draws() | DrawsToo()) >> Pairs(), seed=1)

    assert len({number for _, number in g.forward(0)}) == 3


def test_renaming_a_node_changes_nothing() -> None:
    """What is drawn does not hang on ids."""
    named = Graph(seed=1)
    named.node("zzz", Draws()), named.node("aaa", Draws())

    numbers = list(Graph.somatize(Draws() | Draws(), seed=1).forward(0).values())
    assert list(named.forward(0).values()) == numbers


def test_a_branch_of_another_class_changes_nothing() -> None:
    """Nodes are counted class by class."""
    alone = Graph.somatize(Draws() >> Same(), seed=1).forward(0)
    beside = Graph.somatize(DrawsToo() | Same() >> (Draws() | Draws()) | DrawsToo(), seed=1)

    assert beside.forward(0)["draws"] == alone


def states() -> list[object]:
    """Return where the generators of the process stand."""
    array = np.random.get_state()
    return [random.getstate(), array[1].tolist(), array[2:], torch.get_rng_state().tolist()]


@pytest.mark.parametrize("expression", [DrawsArrays(), LearnsDraws()])
def test_generators_are_left_as_they_were(expression: Filter) -> None:
    """Whoever draws after a run draws what would have been drawn without it."""
    before = states()
    Graph.somatize(expression, seed=1).fit([1]).forward(0)

    assert states() == before


def test_generators_are_left_as_they_were_after_an_error() -> None:
    """Also when the node fails, or is interrupted."""

    class Fails(DrawsArrays):
        def forward(self, x, state):
            super().forward(x, state)
            raise self.error

    before = states()
    for error in (ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            Graph.somatize(Fails(error=error), seed=1).forward(0)
        assert states() == before


def test_a_deterministic_node_is_not_seeded() -> None:
    """One that claims not to draw gets no seed, whatever it does."""
    random.seed(5)
    expected = random.random()
    random.seed(5)

    assert Graph.somatize(Claims(), seed=1, cache=None).forward(0) == expected


def test_threads_draw_what_a_sequential_run_draws() -> None:
    """The generators are the process's own, so one node at a time has them."""

    def wide() -> object:
        expression = DrawsArrays() | LearnsDraws()
        for _ in range(20):
            expression = expression | DrawsArrays() | Draws() | Same()
        return expression

    in_turn = Graph.somatize(wide(), seed=1).fit([1])
    before = states()
    at_once = Graph.somatize(wide(), seed=1, executor="threads").fit([1])

    assert at_once.forward([1]) == in_turn.forward([1])
    assert states() == before


def test_an_observed_run_draws_the_same() -> None:
    """Listening changes nothing."""
    g = Graph.somatize(Draws() | LearnsDraws(), seed=1).fit([1])
    silent = g.forward(0)
    with g._runner.listeners.listening(lambda event: random.random()):
        told = g.forward(0)

    assert told == silent


def test_a_node_that_draws_may_run_a_graph_on_threads() -> None:
    """The inner nodes draw in the thread that holds the generators; nobody waits for ever."""
    told = fresh_python("""
        import random
        from soma import Filter, Graph

        class Draws(Filter):
            _deterministic = False
            def forward(self, x, state):
                return random.random()

        class Bagging(Draws):
            def forward(self, x, state):
                inner = Graph.somatize(Draws() | Draws(), seed=3, executor="threads")
                return [inner.forward(x), random.random()]

        g = Graph.somatize(Bagging() | Bagging(), seed=1, executor="threads")
        first, second = g.forward(0).values()
        again = list(g.forward(0).values())
        print(first[0] == second[0], first[1] == second[1], [first, second] == again)
    """)

    assert told == "True False True\n"


LATE = """
    from soma import Filter, Graph

    class Late(Filter):
        _deterministic = False

        def forward(self, x, state):
            import {library}
            return {draw}

    g = Graph.somatize(Late(), seed=1)
    print(g.forward(0), g.forward(0))
"""


@pytest.mark.parametrize(
    ("library", "draw"),
    [
        ("numpy", "float(numpy.random.rand())"),
        pytest.param("torch", "torch.rand(()).item()", marks=pytest.mark.slow),
    ],
)
def test_a_library_imported_by_the_node_is_seeded_too(library: str, draw: str) -> None:
    """The first run of a process draws what every other one draws."""
    code = LATE.format(library=library, draw=draw)
    first, second = (fresh_python(code).split() for _ in range(2))

    assert len({*first, *second}) == 1


def test_seeded_and_generators_kept_can_be_nested() -> None:
    """Each puts back what it found."""
    random.seed(5)
    expected = random.random()
    random.seed(5)
    with generators_kept():
        random.random()
        with seeded(1):
            once = random.random()
        with seeded(1):
            assert random.random() == once

    assert random.random() == expected

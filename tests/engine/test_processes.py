"""A process pool is an executor like any other."""

import multiprocessing
import os
import random
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from soma import Filter, Graph
from tests.engine.filters import Center, Draws, Keeps, Pairs, Plus, Raises, Same

pytestmark = pytest.mark.process


class Where(Filter):
    """Tells which process it runs in."""

    def forward(self, x, state):
        return os.getpid()


class Dies(Filter):
    """Ends the process it runs in."""

    def forward(self, x, state):
        os._exit(1)


class Writes(Filter):
    """Writes to its input."""

    def forward(self, x, state):
        x[0] = 5
        return x


class Local(Filter):
    """Holds something that cannot leave the process."""

    def __init__(self):
        self.function = lambda x: x

    def forward(self, x, state):
        return self.function(x)


@pytest.fixture(scope="module")
def pool():
    """Give two fresh processes."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        yield processes


def test_a_graph_gives_the_same_in_processes(pool: ProcessPoolExecutor) -> None:
    """Fitted there and run there."""

    def expression() -> object:
        return Same() >> (Center() | Center() >> Keeps()) >> Pairs()

    here = Graph.somatize(expression()).fit([1, 3], [0, 1])
    there = Graph.somatize(expression(), executor=pool).fit([1, 3], [0, 1])

    assert there.forward([2]) == here.forward([2])
    assert there.get_node_state("center") == here.get_node_state("center") == 2


def test_nodes_really_run_elsewhere(pool: ProcessPoolExecutor) -> None:
    """Not in this process."""
    assert Graph.somatize(Where(), executor=pool).forward(0) != os.getpid()


def test_an_error_comes_home(pool: ProcessPoolExecutor) -> None:
    """With its type, the note, and the traceback of the process that it was raised in."""
    g = Graph.somatize(Same() >> Raises(KeyError("gone")), executor=pool)

    with pytest.raises(KeyError, match="gone") as caught:
        g.forward([1, 2])
    assert caught.value.__notes__ == [
        "in node `raises` (Raises), during forward; its input: list of 2"
    ]
    assert "filters.py" in str(caught.value.__cause__)
    assert Graph.somatize(Same(), executor=pool).forward(1) == 1


def test_inputs_are_protected_there_too(pool: ProcessPoolExecutor) -> None:
    """A filter finds the same rules in every process."""
    lists = Graph.somatize(Same() >> (Writes() | Same()), executor=pool).forward([1])
    assert lists == {"writes": [5], "same_2": [1]}

    with pytest.raises(ValueError, match="read-only"):
        Graph.somatize(Writes(), executor=pool).forward(np.zeros(2))


def test_processes_draw_what_a_sequential_run_draws(pool: ProcessPoolExecutor) -> None:
    """The seed travels with the node, and this process's generators are not touched."""
    before = random.getstate()
    expression = Draws() | Draws() | Draws()
    there = Graph.somatize(expression, seed=1, executor=pool).forward(0)

    assert there == Graph.somatize(Draws() | Draws() | Draws(), seed=1).forward(0)
    assert random.getstate() == before


def test_a_filter_that_cannot_travel_is_named(pool: ProcessPoolExecutor) -> None:
    """The note says which node could not be sent."""
    g = Graph.somatize(Same() >> Local(), executor=pool)

    with pytest.raises(Exception, match="pickle") as caught:
        g.forward(1)
    assert "`local` (Local)" in caught.value.__notes__[0]


def test_a_process_that_dies_is_an_error_and_not_the_end() -> None:
    """The pool is broken; the graph runs without it."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        g = Graph.somatize(Plus(1) | Dies(), executor=pool)
        with pytest.raises(BrokenProcessPool):
            g.forward(1)

    assert Graph.somatize(g.filter("plus")).forward(1) == 2

"""Data in chunks gives what all of it at once gives, and no more of it is alive than must be."""

import random
import tracemalloc
from weakref import ref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from soma import Filter, Graph, Inputs
from soma.errors import InvalidInput, NotFitted
from soma.testing import Recording
from tests.engine.filters import Center, Draws, Pairs, Plus, Raises, Same


class Times(Filter):
    """Multiplies each row; a fan-in is added up first."""

    def forward(self, x, state):
        return (sum(x.values()) if isinstance(x, dict) else x) * self.by + 1


class Calls(Same):
    """Gives what it gets, and notes how many rows that had."""

    def forward(self, x, state):
        self.told.append(len(x))
        return x


class Sorts(Filter):
    """Needs all rows at once."""

    _stream_mode = "barrier"

    def forward(self, x, state):
        return sorted(x)


class Counts(Filter):
    """Gives each row with the number of all rows so far, those of the fit too."""

    _stream_mode = "evolving"

    def update(self, state, chunk):
        state = state or {"rows": 0}
        state["rows"] += len(chunk)
        return state

    def forward(self, x, state):
        return [(value, state["rows"]) for value in x]


class FittedCounts(Counts):
    """Starts at what it was fitted on."""

    def fit(self, x, y=None):
        return {"rows": len(x)}


class Noise(Filter):
    """Adds a random number to each row."""

    _deterministic = False

    def forward(self, x, state):
        return [value + random.random() for value in x]


class NoiseAtOnce(Noise):
    """Adds them to all rows at once."""

    _stream_mode = "barrier"


@st.composite
def row_wise(draw) -> Graph:
    """Draw a graph of filters that look at one row at a time."""
    g = Graph(cache=None)
    for node in range(draw(st.integers(1, 8))):
        g.node(f"n{node}", Times(by=draw(st.integers(-3, 3))))
        for source in draw(st.sets(st.integers(0, node - 1), max_size=3)) if node else ():
            g.connect(f"n{source}", f"n{node}")
    return g


@given(row_wise(), st.integers(0, 12), st.integers(1, 14))
def test_row_wise_graphs_do_not_mind_chunks(g: Graph, rows: int, chunk_size: int) -> None:
    """Any graph of them, any number of rows, any size."""
    x = np.arange(2 * rows).reshape(rows, 2)
    whole, streamed = g.forward(x), g.forward(x, stream=True, chunk_size=chunk_size)

    np.testing.assert_equal(streamed, whole)


@given(row_wise(), st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_a_stream_gives_each_chunk_its_output(g: Graph, sizes: list[int]) -> None:
    """Of whatever sizes they are, none at all included."""
    given = [np.arange(float(size)) for size in sizes]

    np.testing.assert_equal(list(g.stream(given)), [g.forward(chunk) for chunk in given])


def test_pulling_one_output_pulls_one_chunk() -> None:
    """Nothing is read ahead."""
    pulled = []
    source = (pulled.append(n) or [n] for n in range(9))
    outputs = Graph.somatize(Same()).stream(source)
    assert pulled == []

    assert next(outputs) == [0]
    assert pulled == [0]


@pytest.mark.parametrize("fails", [True, False])
def test_the_source_is_closed(fails: bool) -> None:
    """When the stream is closed, and when a node fails."""
    closed = []

    def source():
        try:
            yield [1]
            yield [2]
        finally:
            closed.append(True)

    fragile = Raises(None)
    outputs = Graph.somatize(fragile).stream(source())
    next(outputs)
    if fails:
        fragile.error = ValueError("no")
        with pytest.raises(ValueError, match="no"):
            next(outputs)
    outputs.close()

    assert closed == [True]


class Rows(list):
    """Rows whose death can be seen."""


class Makes(Filter):
    """Gives new rows, after counting those of each node that are alive."""

    def forward(self, x, state):
        self.seen.append(sum(one() is not None for one in self.born))
        rows = Rows([1])
        self.born.append(ref(rows))
        return rows


class MakesEvolving(Makes):
    """Does the same with a state that moves on."""

    _stream_mode = "evolving"

    def update(self, state, chunk):
        return (state or 0) + 1


@pytest.mark.parametrize("observed", [False, True])
def test_at_most_one_chunk_of_a_node_is_alive(observed: bool) -> None:
    """When a node's turn comes, its last output and the last chunk have gone."""
    made = [kind(seen=[], born=[]) for kind in (Makes, MakesEvolving, Makes, Makes, Makes)]
    a, b, c, d, e = made
    g = Graph.somatize(a >> b >> (c | d) >> e, cache=None)
    source = Makes(seen=[], born=[])
    recording = Recording()
    with g._runner.listeners.listening(recording.events.append if observed else None):
        for _ in g.stream(source.forward(None, None) for _ in range(20)):
            del _

    assert [one.seen for one in (*made, source)] == [[0] * 20] * 6


def test_memory_does_not_grow_with_the_chunks() -> None:
    """A hundred chunks of a megabyte pass through a few megabytes."""
    g = Graph.somatize(Times(by=2) >> (Plus(1) | Plus(2)) >> Times(by=3), cache=None)
    tracemalloc.start()
    try:
        for output in g.stream(np.zeros(2**17) for _ in range(100)):
            assert output[0] == 16
            del output
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 8 * 2**20


def test_a_barrier_runs_once_on_all_rows() -> None:
    """What is before it runs by chunk, what is behind it on one that has everything."""
    before, behind = Calls(told=[]), Calls(told=[])
    g = Graph.somatize(before >> Sorts() >> behind)

    assert list(g.stream([[3, 1], [2]])) == [[1, 2, 3]]
    assert (before.told, behind.told) == ([2, 1], [3])


def test_a_barrier_may_be_a_root() -> None:
    """It collects the chunks themselves, each its part of an `Inputs`."""
    g = Graph.somatize((Sorts() | Same()) >> Pairs())
    x = Inputs(sorts=[3, 2, 1], same=[6, 5, 4])

    expected = [("sorts", [1, 2, 3]), ("same", [6, 5, 4])]
    assert g.forward(x, stream=True, chunk_size=2) == expected


def test_a_fan_in_of_both_kinds_lines_rows_up() -> None:
    """The side without a barrier is collected too."""
    g = Graph.somatize(Same() >> (Sorts() | Same()) >> Pairs())

    assert list(g.stream([[3, 1], [2]])) == [[("sorts", [1, 2, 3]), ("same_2", [3, 1, 2])]]


def test_leaves_behind_a_barrier_come_last() -> None:
    """The others come with their chunk, and `forward` puts all of them together."""
    g = Graph.somatize(Sorts() | Same())

    given = [{"same": [3, 1]}, {"same": [2]}, {"sorts": [1, 2, 3]}]
    assert list(g.stream([[3, 1], [2]])) == given
    together = g.forward([3, 1, 2], stream=True, chunk_size=2)
    assert list(together.items()) == [("sorts", [1, 2, 3]), ("same", [3, 1, 2])]


def test_no_chunks_give_no_outputs() -> None:
    """A barrier has nothing to run on either."""
    assert list(Graph.somatize(Sorts()).stream([])) == []


def test_an_evolving_state_moves_on_before_each_chunk() -> None:
    """From nothing, where nothing was fitted."""
    g = Graph.somatize(Counts())

    assert list(g.stream([[7, 8], [9]])) == [[(7, 2), (8, 2)], [(9, 3)]]


def test_an_evolving_state_starts_at_the_fitted_one_and_leaves_it() -> None:
    """Even an `update` that writes to its state does not reach the graph's own."""
    g = Graph.somatize(FittedCounts()).fit([1, 2, 3])

    for _ in range(2):
        assert list(g.stream([[7, 8], [9]])) == [[(7, 5), (8, 5)], [(9, 6)]]
    assert g.get_node_state("fitted_counts") == {"rows": 3}


def test_a_filter_that_evolves_needs_no_fit_in_a_stream() -> None:
    """It starts from None."""
    assert list(Graph.somatize(FittedCounts()).stream([[7]])) == [[(7, 1)]]


def test_an_evolving_filter_behind_a_barrier_sees_one_chunk() -> None:
    """It moves on once, with all rows."""
    g = Graph.somatize(Sorts() >> Counts())

    assert g.forward([2, 1], stream=True, chunk_size=1) == [(1, 2), (2, 2)]


def test_learned_states_are_used() -> None:
    """A chunk is centred by the mean of what was fitted."""
    g = Graph.somatize(Center()).fit([1, 3])

    assert g.forward([1, 2, 3], stream=True, chunk_size=2) == [-1, 0, 1]


def test_a_node_that_draws_draws_the_same_again() -> None:
    """And other numbers for each chunk."""
    g = Graph.somatize(Noise(), seed=1)
    first, again = (list(g.stream([[0], [0], [0]])) for _ in range(2))

    assert first == again
    assert len({row for (row,) in first}) == 3
    assert list(g.stream([[0]], seed=2)) != first[:1]


def test_what_sees_all_rows_draws_what_forward_draws() -> None:
    """A single chunk, or a barrier."""
    for kind in (Noise, NoiseAtOnce):
        g = Graph.somatize(kind(), seed=1)
        size = 3 if kind is Noise else 2
        assert g.forward([0, 0, 0], stream=True, chunk_size=size) == g.forward([0, 0, 0])


def test_the_generators_stay_where_they_were() -> None:
    """Between two chunks the caller's own numbers go on."""
    state = random.getstate()
    next(Graph.somatize(Noise(), seed=1).stream([[0], [0]]))

    assert random.getstate() == state


def test_gradients_are_recorded_between_chunks() -> None:
    """The caller's mode is not changed while the stream waits."""
    next(Graph.somatize(Same()).stream([torch.zeros(1)]))

    assert torch.is_grad_enabled()


def test_a_stream_leaves_the_cache_alone() -> None:
    """What is stored is not looked up, and nothing is kept."""
    calls = Calls(told=[])
    g = Graph.somatize(calls, cache="memory")
    for _ in range(2):
        g.forward([1, 2], stream=True, chunk_size=1)

    assert calls.told == [1, 1, 1, 1]


def test_listeners_hear_of_each_chunk() -> None:
    """A node starts and ends once for each."""
    g, recording = Graph.somatize(Same()), Recording()
    with recording.of(g):
        g.forward([1, 2], stream=True, chunk_size=1)

    assert recording.kinds() == ["NodeStarted", "NodeFinished"] * 2
    assert recording.outputs == [("same", [1]), ("same", [2])]


# What is refused


@pytest.mark.parametrize("chunk_size", [None, 0, -1, 2.0])
def test_a_chunk_has_at_least_one_row(chunk_size: object) -> None:
    """The error says how to write it."""
    with pytest.raises(InvalidInput, match=r"`chunk_size` is .*chunk_size=1024"):
        Graph.somatize(Same()).forward([1], stream=True, chunk_size=chunk_size)


@pytest.mark.parametrize("x", [3, "abc", None, (1, 2), {"a": [1], "b": [1, 2]}, np.zeros(())])
def test_data_without_rows_is_refused(x: object) -> None:
    """There is nothing to take chunks from."""
    with pytest.raises(InvalidInput, match="none that can be counted"):
        Graph.somatize(Same()).forward(x, stream=True, chunk_size=1)


@pytest.mark.parametrize("iterable", [3, None, "abc", np.zeros((2, 2)), {"a": [1]}])
def test_what_gives_no_chunks_is_refused_at_once(iterable: object) -> None:
    """An array would give its rows, and a dict its keys."""
    with pytest.raises(InvalidInput, match="an iterable that gives chunks is wanted"):
        Graph.somatize(Same()).stream(iterable)


def test_an_item_that_is_no_chunk_is_refused_by_number() -> None:
    """Those before it have been answered."""
    outputs = Graph.somatize(Same()).stream([[1], 2])
    next(outputs)

    with pytest.raises(InvalidInput, match="int came as a chunk") as caught:
        next(outputs)
    assert caught.value.__notes__ == ["in chunk 1 of the stream, counted from 0"]


def test_a_stream_before_the_fit_is_refused_at_once() -> None:
    """Before anything is pulled."""
    with pytest.raises(NotFitted, match="`center` learns"):
        Graph.somatize(Center()).stream(iter([[1]]))


def test_an_error_tells_its_node_and_its_chunk() -> None:
    """In notes on the error as it was raised."""
    fragile = Raises(None)
    outputs = Graph.somatize(fragile).stream([[1], [2, 3]])
    next(outputs)
    fragile.error = KeyError("no")

    with pytest.raises(KeyError) as caught:
        next(outputs)
    assert caught.value.__notes__ == [
        "in node `raises` (Raises), during forward; its input: list of 2",
        "in chunk 1 of the stream, counted from 0",
    ]


def test_an_error_behind_a_barrier_says_so() -> None:
    """It is about all chunks."""
    g = Graph.somatize(Sorts() >> Raises(KeyError("no")))

    with pytest.raises(KeyError) as caught:
        list(g.stream([[1], [2]]))
    assert caught.value.__notes__[-1] == "at a barrier or behind it, on all 2 chunks together"


def test_a_stop_iteration_in_a_node_is_an_error() -> None:
    """It does not look like the end of the data."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(Graph.somatize(Raises(StopIteration())).stream([[1]]))


def test_outputs_without_rows_cannot_be_joined() -> None:
    """The error names the node, and what helps."""
    g = Graph.somatize(Draws())

    with pytest.raises(InvalidInput, match="float came for each chunk") as caught:
        g.forward([1, 2], stream=True, chunk_size=1)
    assert caught.value.__notes__ == ["joining 2 chunks at node `draws` (Draws)"]


def test_an_interrupt_leaves_the_graph_usable() -> None:
    """The next stream is an ordinary one."""
    fragile = Raises(KeyboardInterrupt())
    g = Graph.somatize(Same() >> fragile)
    with pytest.raises(KeyboardInterrupt):
        list(g.stream([[1]]))
    fragile.error = None

    assert list(g.stream([[1]])) == [[1]]

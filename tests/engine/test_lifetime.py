"""A value lives until its last reader has run, and no longer."""

from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma import Filter, Graph
from soma.testing import Recording


class Value:
    """Something whose death can be seen."""


class Lives:
    """Keeps weak references to values, and tells which are alive."""

    def __init__(self):
        self.born = {}

    def add(self, name, value):
        """Remember a value without keeping it."""
        self.born[name] = ref(value)
        return value

    def now(self):
        """Return the names of those alive."""
        return {name for name, value in self.born.items() if value() is not None}


class Step(Filter):
    """Gives a new value, after looking which of the others are alive."""

    def forward(self, x, state):
        self.seen[self.name] = self.lives.now()
        return self.lives.add(self.name, Value())


@pytest.fixture(params=["sequential", "observed", "threads"])
def run(request: pytest.FixtureRequest):
    """Give a function that runs a graph in one of the loops."""

    def forward(g: Graph, x: object) -> object:
        if request.param == "sequential":
            return g.forward(x)
        if request.param == "observed":
            recording = Recording()
            with g._runner.listeners.listening(recording.events.append):
                return g.forward(x)
        with ThreadPoolExecutor(1) as pool, g._runner.executors.using(pool):
            return g.forward(x)

    return forward


def steps(*names: str) -> tuple[list[Step], Lives, dict[str, set[str]]]:
    """Return steps that share one book of lives, and what each of them will see."""
    lives, seen = Lives(), {}
    return [Step(name=name, lives=lives, seen=seen) for name in names], lives, seen


def test_in_a_chain_only_the_input_is_alive(run) -> None:
    """Whatever its length."""
    (a, b, c, d), _, seen = steps(*"abcd")
    run(Graph.somatize(a >> b >> c >> d), 0)

    assert seen == {"a": set(), "b": {"a"}, "c": {"b"}, "d": {"c"}}


def test_a_value_waits_for_its_last_reader(run) -> None:
    """The one that is furthest away."""
    (a, b, c, d, e), _, seen = steps(*"abcde")
    g = Graph()
    for id, step in zip("abcde", (a, b, c, d, e), strict=True):
        g.node(id, step)
    for link in ("ab", "bc", "cd", "ad", "de"):
        g.connect(*link)
    run(g, 0)

    assert seen["c"] == {"a", "b"}
    assert seen["d"] == {"a", "c"}
    assert seen["e"] == {"d"}


def test_a_leaf_stays_until_the_end(run) -> None:
    """It is part of the answer."""
    (a, b, c, d), _, seen = steps(*"abcd")
    output = run(Graph.somatize(a >> (b | c >> d)), 0)

    assert seen["d"] == {"b", "c"}
    assert set(output) == {"step_2", "step_4"}


def test_the_graph_keeps_nothing(run) -> None:
    """When the caller lets go of the answer, everything is gone."""
    (a, b, c), lives, _ = steps(*"abc")
    g = Graph.somatize(a >> (b | c))
    output = run(g, lives.add("x", Value()))
    assert lives.now() == {"b", "c"}
    del output

    assert lives.now() == set()


def test_an_error_keeps_nothing(run) -> None:
    """When the error has been handled, what the run had made is gone."""

    class Fails(Filter):
        def forward(self, x, state):
            raise ValueError("no")

    (a, b), lives, _ = steps(*"ab")
    g = Graph.somatize(a >> (b | Fails()))
    with pytest.raises(ValueError, match="no"):
        run(g, 0)

    assert lives.now() == set()


@st.composite
def graphs(draw) -> list[tuple[int, ...]]:
    """Draw for each node which of the ones before it reads."""
    count = draw(st.integers(1, 12))
    return [
        tuple(sorted(draw(st.sets(st.integers(0, node - 1), max_size=3)))) if node else ()
        for node in range(count)
    ]


@given(graphs())
def test_in_any_graph_only_what_is_wanted_is_alive(reads: list[tuple[int, ...]]) -> None:
    """Leaves, and values that this node or a later one reads."""
    made, _, seen = steps(*map(str, range(len(reads))))
    g = Graph()
    for node, step in enumerate(made):
        g.node(str(node), step)
        for source in reads[node]:
            g.connect(str(source), str(node))
    g.forward(0)

    for node, alive in seen.items():
        later = {str(one) for target in range(int(node), len(reads)) for one in reads[target]}
        before = set(map(str, range(int(node))))
        assert alive == before & (later | set(g.leaves()))

"""Every loop gives what a plain recursive evaluation gives, on any graph."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma import Filter, Graph
from soma.testing import Recording

PRIME = 2**61 - 1


def mixed(*numbers: int) -> int:
    """Return one number that depends on all of them and on their order."""
    total = 0
    for number in numbers:
        total = (total * 1_000_003 + number + 1) % PRIME
    return total


def number(x: object) -> int:
    """Return an input as one number, in which the order of a fan-in counts."""
    return mixed(*x.values()) if isinstance(x, dict) else mixed(x)


class Mixes(Filter):
    """Answers with a number made of its salt and its input."""

    def forward(self, x, state):
        return mixed(self.salt, number(x))


class Learns(Filter):
    """Answers with a number that depends on what it was fitted on as well."""

    def fit(self, x, y=None):
        return mixed(number(x), y)

    def forward(self, x, state):
        return mixed(self.salt, state, number(x))


class Drawn(NamedTuple):
    """A graph as drawn: for each node, in order, what it reads and whether it learns."""

    reads: list[list[int]]
    learns: list[bool]
    declared: list[int]

    def graph(self) -> Graph:
        """Build it, the nodes declared in another order than they run in."""
        g = Graph()
        for node in self.declared:
            g.node(f"n{node}", (Learns if self.learns[node] else Mixes)(salt=node))
        for node, sources in enumerate(self.reads):
            for source in sources:
                g.connect(f"n{source}", f"n{node}")
        return g

    def leaves(self) -> list[int]:
        """Return the nodes that nobody reads."""
        read = {source for sources in self.reads for source in sources}
        return [node for node in range(len(self.reads)) if node not in read]

    def evaluated(self, node: int, x: int, states: dict[int, int]) -> int:
        """Return what a node answers, by asking those before it first."""
        given = [self.evaluated(source, x, states) for source in self.reads[node]] or [x]
        state = [states[node]] if self.learns[node] else []
        return mixed(node, *state, mixed(*given))

    def fitted(self, x: int, y: int) -> dict[int, int]:
        """Return what each node learns."""
        states: dict[int, int] = {}
        for node, sources in enumerate(self.reads):
            given = [self.evaluated(source, x, states) for source in sources] or [x]
            states[node] = mixed(mixed(*given), y)
        return states

    def expected(self, x: int, states: dict[int, int]) -> dict[str, int]:
        """Return what each leaf answers."""
        return {f"n{leaf}": self.evaluated(leaf, x, states) for leaf in self.leaves()}


@st.composite
def drawn(draw) -> Drawn:
    """Draw a graph of up to twelve nodes."""
    count = draw(st.integers(1, 12))
    sources = [
        draw(st.lists(st.integers(0, node - 1), unique=True, max_size=4)) if node else []
        for node in range(count)
    ]
    learns = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return Drawn(sources, learns, draw(st.permutations(range(count))))


def by_leaf(g: Graph, output: object) -> dict[str, object]:
    """Return an output by leaf, also where there is one leaf only."""
    return output if len(g.leaves()) > 1 else {g.leaves()[0]: output}  # type: ignore[return-value]


@pytest.fixture(scope="module")
def pool():
    """Give threads that all examples share."""
    with ThreadPoolExecutor(3) as threads:
        yield threads


@given(drawn(), st.integers(0, 99), st.integers(0, 99))
def test_a_sequential_run(case: Drawn, x: int, y: int) -> None:
    """Fitted on one input and run on another."""
    g = case.graph().fit(x, y)

    assert by_leaf(g, g.forward(x + 1)) == case.expected(x + 1, case.fitted(x, y))


@given(drawn(), st.integers(0, 99), st.integers(0, 99))
def test_an_observed_run(case: Drawn, x: int, y: int) -> None:
    """With somebody listening, who hears of each node once and sees its answer."""
    g, recording = case.graph(), Recording()
    states = case.fitted(x, y)
    with recording.of(g):
        g.fit(x, y)

    seen = {node: case.evaluated(int(node[1:]), x, states) for node in g.filter_ids()}
    assert recording.outputs == list(seen.items())
    assert by_leaf(g, g.forward(x + 1)) == case.expected(x + 1, states)


@given(drawn(), st.integers(0, 99), st.integers(0, 99))
def test_a_run_on_threads(pool: ThreadPoolExecutor, case: Drawn, x: int, y: int) -> None:
    """Side by side, in fit and in forward."""
    g = Graph(executor=pool)
    g.node(case.graph())
    g.fit(x, y)

    expected = case.expected(x + 1, case.fitted(x, y))
    assert by_leaf(g, g.forward(x + 1)) == {f"graph.{leaf}": one for leaf, one in expected.items()}

"""How values travel through a graph."""

import math

import pytest

from soma import Filter, Graph
from tests.engine.filters import Center, Other, Pairs, Plus, Same


def test_a_chain_is_applied_from_left_to_right() -> None:
    """Each filter gets what the one before gave."""

    class Text(Filter):
        def forward(self, x, state):
            return f"{x}{self.sign}"

    assert Graph.somatize(Text(sign="a") >> Text(sign="b") >> Text(sign="c")).forward("") == "abc"


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_a_fan_in_gets_a_dict_in_edge_order(order: tuple[str, str]) -> None:
    """The order of the links counts, not that of the nodes."""
    g = Graph()
    g.node("one", Plus(1)), g.node("two", Plus(2)), g.node("join", Pairs())
    for source in order:
        g.connect(source, "join")

    expected = [(source, {"one": 11, "two": 12}[source]) for source in order]
    assert g.forward(10) == expected


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_a_fan_in_is_the_same_in_fit(order: tuple[str, str]) -> None:
    """`fit` gets the dict that `forward` gets."""

    class Learns(Pairs):
        def fit(self, x, y=None):
            return list(x)

    g = Graph()
    g.node("one", Plus(1)), g.node("two", Plus(2)), g.node("join", Learns())
    for source in order:
        g.connect(source, "join")

    assert g.fit(0).get_node_state("join") == list(order)


def test_several_leaves_give_a_dict() -> None:
    """Heads are told apart by their ids, in topological order."""
    g = Graph.somatize(Plus(1) >> (Plus(10) | Plus(20) >> Plus(100)))

    assert g.forward(0) == {"plus_2": 11, "plus_4": 121}
    assert list(g.forward(0)) == g.leaves()


def test_a_leaf_in_the_middle_of_the_order_keeps_its_value() -> None:
    """A head that is ready early is not overwritten by what runs after it."""
    g = Graph()
    for id, amount in (("root", 1), ("early", 10), ("late", 100), ("end", 1000)):
        g.node(id, Plus(amount))
    g.connect("root", "early").connect("root", "late").connect("late", "end")

    assert g.forward(0) == {"early": 11, "end": 1101}


def test_a_value_may_be_read_by_many() -> None:
    """Each reader gets the value, near or far."""
    g = Graph()
    for id, filter in (("a", Plus(1)), ("b", Plus(10)), ("c", Plus(100)), ("join", Pairs())):
        g.node(id, filter)
    for link in (("a", "b"), ("b", "c"), ("c", "join"), ("a", "join"), ("b", "join")):
        g.connect(*link)

    assert g.forward(0) == [("c", 111), ("a", 1), ("b", 11)]


def test_a_graph_without_learners_needs_no_fit() -> None:
    """Stateless filters run at once, and `fit` is allowed."""
    g = Graph.somatize(Plus(1) >> Plus(2))

    assert g.forward(0) == g.fit(0).forward(0) == 3


@pytest.mark.parametrize("value", [None, 0, "", [], {}, False, (), float("inf"), object(), Graph()])
def test_any_value_goes_through(value: object) -> None:
    """Nothing is special about a value, also where two read it."""
    output = Graph.somatize(Same() >> (Same() | Other())).forward(value)

    assert output == {"same_2": value, "other": value}


def test_nan_passes() -> None:
    """A missing number is a number to a graph."""
    g = Graph.somatize(Same() >> Center()).fit([1.0, 3.0])
    first, second = g.forward([math.nan, 5.0])

    assert math.isnan(first)
    assert second == 3.0


def test_an_iterator_is_handed_on_unread() -> None:
    """A graph does not look into what only its filters can read."""
    rows = iter([1, 2, 3])

    assert Graph.somatize(Same()).forward(rows) is rows
    assert next(rows) == 1


def test_repeated_runs_are_the_same() -> None:
    """A run leaves nothing behind for the next one."""
    g = Graph.somatize((Plus(1) | Plus(2) >> Plus(3)) >> Pairs())

    assert [g.forward(0), g.forward(5), g.forward(0)] == [
        [("plus", 1), ("plus_3", 5)],
        [("plus", 6), ("plus_3", 10)],
        [("plus", 1), ("plus_3", 5)],
    ]


def test_a_graph_runs_inside_a_filter_of_itself() -> None:
    """A run may start another one of the same graph."""

    class Counts(Filter):
        def forward(self, x, state):
            return x if x <= 0 else g.forward(x - 1) + 1

    g = Graph.somatize(Same() >> Counts())

    assert g.forward(5) == 5


def test_a_loop_over_seeds_does_not_grow() -> None:
    """What is prepared for a run is kept for some runs, not for ever."""
    g = Graph.somatize(Same())
    for seed in range(1_000):
        g.forward(1, seed=seed)

    assert len(g._runner._programs) < 100

"""`fit` walks the graph once and keeps what each filter learned."""

import pytest

from soma import Filter, Graph
from soma.errors import NotFitted, SomaWarning
from tests.engine.filters import Center, Keeps, Pairs, Plus, Raises, RaisesInFit, Same, Told


def test_every_node_runs_once_in_topological_order() -> None:
    """Each learns on what the ones before give, then answers; leaves included."""
    told: list[tuple[object, ...]] = []
    a, b, c = (Told(told=told, name=name) for name in "abc")
    Graph.somatize(a >> (b | c)).fit("x", "y")

    assert told == [
        ("fit", "a", "x", "y"),
        ("forward", "a", "x", "a"),
        ("fit", "b", "x>a", "y"),
        ("forward", "b", "x>a", "b"),
        ("fit", "c", "x>a", "y"),
        ("forward", "c", "x>a", "c"),
    ]


@pytest.mark.parametrize("y", [None, [1, 2], "targets", {"keeps": 3}])
def test_every_node_gets_the_same_y(y: object) -> None:
    """Targets go to each filter that learns, as they are."""
    g = Graph.somatize(Keeps() >> Same() >> Keeps()).fit("x", y)

    assert [g.get_node_state(node)[1] for node in ("keeps", "keeps_2")] == [y, y]


def test_fit_returns_the_graph() -> None:
    """So that `fit` and `forward` fit in one line."""
    g = Graph.somatize(Center())

    assert g.fit([1, 2, 3]) is g
    assert g.forward([2]) == [0]


def test_a_second_fit_replaces_the_first() -> None:
    """Nodes further on learn from what was learned just now."""
    g = Graph.somatize(Center() >> Keeps())
    g.fit([1, 3])
    g.fit([10, 30])

    assert g.get_node_state("center") == 20
    assert g.get_node_state("keeps") == ([-10, 10], None)


def test_a_fit_that_fails_changes_nothing() -> None:
    """Either every node has learned or none has: the old states stay."""
    fragile = RaisesInFit(None)
    g = Graph.somatize(Center() >> fragile).fit([1, 3])
    fragile.error = ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        g.fit([10, 30])
    assert g.get_node_state("center") == 2
    assert g.forward([2]) == [0]


def test_a_first_fit_that_fails_leaves_the_graph_unfitted() -> None:
    """Half a fit is no fit."""
    g = Graph.somatize(Center() >> Raises(KeyError("k")))

    with pytest.raises(KeyError):
        g.fit([1, 3])
    with pytest.raises(NotFitted, match="`center` learns"):
        g.forward([1])


def test_forward_before_fit_names_every_unfitted_node() -> None:
    """All of them at once, before anything runs, with the call that helps."""
    told: list[tuple[object, ...]] = []
    g = Graph.somatize(Told(told=told, name="t") >> Center() >> Same() >> Keeps())

    with pytest.raises(NotFitted, match=r"`told`, `center` and `keeps`.*g\.fit\(x, y\)") as caught:
        g.forward([1])
    assert isinstance(caught.value, RuntimeError)
    assert told == []


def test_one_unfitted_node_is_named_alone() -> None:
    """A state given by hand counts; what is still missing is told."""
    g = Graph.somatize(Center() >> Keeps())
    g.set_node_state("keeps", 1)

    with pytest.raises(NotFitted, match="`center` learns from data and has not been fitted"):
        g.forward([1])


@pytest.mark.parametrize("state", [None, 0, "", [], False])
def test_an_empty_state_counts_as_fitted(state: object) -> None:
    """A filter may learn nothing worth keeping."""

    class Learns(Filter):
        def fit(self, x, y=None):
            return state

        def forward(self, x, state):
            return ["ran", state]

    g = Graph.somatize(Learns()).fit("x")

    assert g.forward("x") == ["ran", state]
    assert g.get_node_state("learns") == state


def test_a_state_set_to_none_counts_as_fitted() -> None:
    """Setting a state is what fitting would have done, whatever the state is."""
    g = Graph.somatize(Keeps()).set_node_state("keeps", None)

    assert g.forward(1) is None


def test_a_state_given_to_a_filter_that_does_not_learn_is_used_in_fit_too() -> None:
    """What comes after it learns from the answer that `forward` will give."""

    class Shift(Filter):
        def forward(self, x, state):
            return [value + state for value in x]

    g = Graph.somatize(Shift() >> Center()).set_node_state("shift", 100)
    g.fit([1, 3])

    assert g.get_node_state("center") == 102


def test_a_filter_added_later_has_to_be_fitted() -> None:
    """States of the others stay."""
    g = Graph.somatize(Center()).fit([1, 3])
    g.node(Keeps())
    g.connect("center", "keeps")

    with pytest.raises(NotFitted, match="`keeps` learns"):
        g.forward([1])
    assert g.get_node_state("center") == 2


def test_branches_learn_side_by_side() -> None:
    """Each branch has a state of its own, also of one class."""
    g = Graph.somatize((Plus(1) >> Keeps() | Plus(2) >> Keeps()) >> Pairs()).fit(10)

    assert g.forward(0) == [("keeps", (11, None)), ("keeps_2", (12, None))]


def test_fit_needs_no_y() -> None:
    """Targets are optional for the graph; a filter that wants some says so itself."""

    class Wants(Same):
        def fit(self, x, y):
            return len(y)

    assert Graph.somatize(Wants()).fit([1], [2]).get_node_state("wants") == 1
    with pytest.raises(TypeError, match="NoneType"):
        Graph.somatize(Wants()).fit([1])


@pytest.mark.parametrize("returns_itself", [True, False])
def test_a_fit_that_keeps_its_state_on_the_filter_is_told(returns_itself: bool) -> None:
    """What is not returned can be neither copied nor told apart."""

    class Estimator(Filter):
        def fit(self, x, y=None):
            self.mean_ = sum(x) / len(x)
            return self if returns_itself else None

        def forward(self, x, state):
            return [value - self.mean_ for value in x]

    with pytest.warns(SomaWarning, match=r"`Estimator\.fit` stored `mean_` on the filter"):
        Graph.somatize(Estimator()).fit([1.0, 3.0])

"""What can be read once, such as a generator, is not given to two readers without a word."""

import pytest

from soma import Filter, Graph
from soma.errors import InvalidInput, InvalidOutput
from tests.engine.filters import Same


class Lines(Filter):
    """Gives its input item by item."""

    def forward(self, x, state):
        return (item for item in x)


class Listed(Filter):
    """Reads its input to the end."""

    def forward(self, x, state):
        return list(x)


class Total(Filter):
    """Learns a sum, and gives what it reads."""

    def fit(self, x, y=None):
        return sum(x)

    def forward(self, x, state):
        return list(x)


@pytest.mark.parametrize("cache", [None, "memory"])
def test_a_generator_reaches_its_only_reader(cache: str | None) -> None:
    """Between two nodes, and as the input of one root, a generator is fine."""
    g = Graph.somatize(Lines() >> Listed(), cache=cache)

    assert g.forward(item for item in [1, 2]) == [1, 2]
    assert g.forward([1, 2]) == [1, 2]


@pytest.mark.parametrize("cache", [None, "memory"])
def test_two_nodes_do_not_share_a_generator(cache: str | None) -> None:
    """The second would find nothing in it, so the node that gives it is told."""
    g = Graph.somatize(Lines() >> (Listed() | Listed()), cache=cache)

    with pytest.raises(InvalidOutput, match=r"a generator, which can be read once") as raised:
        g.forward([1, 2])
    assert "in node `lines` (Lines)" in raised.value.__notes__[0]


@pytest.mark.parametrize("cache", [None, "memory"])
def test_two_roots_do_not_share_a_generator(cache: str | None) -> None:
    """The roots that would read it are named."""
    g = Graph.somatize(Listed() | Same(), cache=cache)

    with pytest.raises(InvalidInput, match="`listed` and `same` each read it"):
        g.forward(iter([1, 2]))


def test_a_fit_leaves_nothing_of_a_generator_to_forward() -> None:
    """A filter that learns from a generator and feeds another one is told."""
    g = Graph.somatize(Lines() >> Total() >> Same())

    with pytest.raises(InvalidInput, match="`fit` would leave nothing of it to `forward`"):
        g.fit([1, 2])


def test_a_lonely_filter_learns_from_a_generator() -> None:
    """Where nobody reads its answer, nothing is lost."""
    g = Graph.somatize(Total()).fit(item for item in [1, 2])

    assert g.get_node_state("total") == 3

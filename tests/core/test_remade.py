"""A filter made once more, and a graph of such filters."""

from dataclasses import dataclass
from threading import Lock
from typing import Any

import pytest

from soma import Filter, Graph
from soma.core import parameters_of, remade


class Free(Filter):
    """Keywords become attributes; one has a default."""

    depth = 2
    limits: Any = (0, 1)

    def fit(self, x: Any, y: Any = None) -> Any:
        self.seen = x
        return sum(x)

    def forward(self, x: Any, state: Any) -> Any:
        return [value + state for value in x]


class Fixed(Free):
    """A constructor of its own, with an argument that others follow."""

    def __init__(self, first: Any, *rest: Any, last: Any = None) -> None:
        super().__init__(first=first, rest=rest, last=last)


@dataclass(frozen=True)
class Frozen(Filter):
    """A filter that is a frozen dataclass."""

    size: int = 3

    def forward(self, x: Any, state: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("filter", "known"),
    [
        (Free(width=1), {"depth": 2, "limits": (0, 1), "width": 1}),
        (Free(depth=5), {"depth": 5, "limits": (0, 1)}),
        (Fixed(1, 2, last=4), {"first": 1, "last": 4}),
        (Frozen(), {"size": 3}),
    ],
)
def test_parameters_have_the_values_in_use(filter: Filter, known: dict[str, Any]) -> None:
    """Arguments by name, their defaults, and attributes of a class that takes any keyword."""
    assert parameters_of(filter) == known


@pytest.mark.parametrize(
    ("filter", "changes", "shown"),
    [
        (Free(width=1), {}, "Free(width=1)"),
        (Free(width=1), {"depth": 7}, "Free(width=1, depth=7)"),
        (Fixed(1, 2, last=4), {"first": 9}, "Fixed(9, 2, last=4)"),
        (Frozen(2), {"size": 5}, "Frozen(size=5)"),
    ],
)
def test_it_has_the_same_arguments(filter: Filter, changes: dict[str, Any], shown: str) -> None:
    """All arguments come along, but for those that are changed."""
    assert repr(remade(filter, changes)) == shown


def test_arguments_are_copied() -> None:
    """A list is another one; what cannot be copied is shared."""
    lock, values = Lock(), [1]
    made = remade(Free(lock=lock, values=values))

    assert made.lock is lock
    assert made.values == [1]
    assert made.values is not values


def test_an_unfitted_graph_has_learned_nothing() -> None:
    """Nodes, links, inlined graphs and settings are the same; states and attributes are not."""
    inner = Graph.somatize(Free(width=1) >> Free(), name="inner")
    g = Graph.somatize(inner >> (Free() | Frozen()), name="all", seed=3, cache="memory").fit([1])
    made = g.unfitted()

    assert (str(made), made.edges()) == (str(g), g.edges())
    assert made.get_node_state("inner.free") is None
    assert not hasattr(made.filter("inner.free"), "seen")
    assert made.connect("frozen", "inner").edges()[-1] == ("frozen", "inner.free")
    assert ("frozen", "inner.free") not in g.edges()


def test_an_unfitted_graph_shares_the_cache() -> None:
    """What one graph has computed, the other need not."""
    g = Graph.somatize(Free(width=1), cache="memory").fit([1])
    made = g.unfitted().fit([1])

    assert not hasattr(made.filter("free"), "seen")  # it did not run
    assert made.forward([1]) == g.forward([1]) == [2]


def test_filters_may_be_exchanged() -> None:
    """A node gets another filter, and all the others are as they were."""
    g = Graph.somatize(Free(width=1) >> Frozen())

    assert repr(g.unfitted({"frozen": Free()}).filter("frozen")) == "Free()"
    assert repr(g.filter("frozen")) == "Frozen(size=3)"

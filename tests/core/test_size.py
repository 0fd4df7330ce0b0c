"""Graphs of many thousand nodes are as easy as small ones."""

import gc

import pytest

from soma import Graph
from soma.core import Composable
from tests.core.filters import A, B, C


def chain(count: int) -> Composable:
    """Return `count` filters one after the other."""
    expression: Composable = A()
    for _ in range(count - 1):
        expression = expression >> B()
    return expression


def fork(count: int) -> Composable:
    """Return `count` filters side by side."""
    expression: Composable = A()
    for _ in range(count - 1):
        expression = expression | B()
    return expression


def test_a_chain_of_ten_thousand() -> None:
    """A long chain composes, runs and draws without deep recursion."""
    g = Graph.somatize(chain(10_000))

    assert g.forward(7) == 7
    assert len(g.edges()) == 9_999
    assert "b_9999" in str(g)


def test_a_chain_built_from_its_end() -> None:
    """A tree of chains that leans to the right is as long as one that leans to the left."""
    expression: Composable = A()
    for _ in range(9_999):
        expression = B() >> expression
    g = Graph.somatize(expression)

    assert (g.roots(), g.leaves()) == (["b"], ["a"])


def test_a_fork_of_five_thousand() -> None:
    """A wide fork between two filters is one fan-in."""
    g = Graph.somatize(C() >> fork(5_000) >> C())

    assert len(g.edges()) == 10_000
    assert len(g.forward(1)) == 5_000


@pytest.mark.parametrize("make", [chain, fork])
def test_a_long_expression_goes_as_it_came(make) -> None:
    """Its repr is short, and deleting it does not recurse."""
    expression = make(10_000)

    assert len(repr(expression)) < 200
    del expression
    gc.collect()

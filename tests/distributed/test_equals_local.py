"""Training with nodes on workers gives the weights of training here, bit for bit."""

from collections.abc import Callable
from functools import partial

import pytest
import torch

from soma import Graph
from tests.distributed.graphs import GRAPHS, OPTIMIZERS, Make, X, made, trained, weights

pytestmark = [pytest.mark.process, pytest.mark.slow]


def same(one: Graph, other: Graph) -> None:
    """Check that two graphs hold the same weights, and answer the same."""
    mine, theirs = weights(one), weights(other)
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if not torch.equal(mine[name], theirs[name])] == []
    assert torch.equal(one.freeze().forward(X), other.freeze().forward(X))


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_every_shape_of_graph(make: Make, workers: tuple[str, ...]) -> None:
    """A chain in two and three, a branch, a fan-in, an opaque filter, two nodes on one worker."""
    here, there = made(make), made(make, workers)

    assert trained(here, OPTIMIZERS["adam"]) == trained(there, OPTIMIZERS["adam"])
    same(here, there)


@pytest.mark.parametrize("optimize", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("more", [{}, {"clip": 0.3}, {"schedule": True}], ids=str)
def test_every_optimizer(
    optimize: Callable[[Graph], object], more: dict[str, object], workers: tuple[str, ...]
) -> None:
    """Adam, AdamW, momentum, groups, several optimizers; plain, clipped, with a schedule."""
    make = GRAPHS["chain in three"]
    here, there = made(make), made(make, workers)

    assert trained(here, optimize, **more) == trained(there, optimize, **more)
    same(here, there)


def test_the_fit_of_a_graph(workers: tuple[str, ...]) -> None:
    """`g.fit` drives the same steps."""
    make, optimizer = GRAPHS["fan-in"], partial(torch.optim.Adam, lr=0.01)
    here, there = made(make), made(make, workers)
    for g in (here, there):
        torch.manual_seed(1)
        g.fit(
            X,
            torch.zeros(24, 2),
            epochs=2,
            batch_size=8,
            clip=1.0,
            optimizer=optimizer,
            progress=False,
        )

    same(here, there)

"""Chunks through modules: in eval, without gradients, in the kind that came in."""

import numpy as np
import pytest
import torch
from torch import nn

from soma import Filter, Graph
from soma.errors import InvalidInput, ModeError, NotMaterialized
from tests.training.filters import Concatenate, Dense, Gated, Standardize, Wrap, data


@pytest.fixture
def g() -> Graph:
    """Give a graph with a fork, a fan-in and dropout, in eval and not frozen."""
    drop = Wrap(lambda shape: nn.Sequential(nn.Linear(shape[-1], 4), nn.Dropout()))
    x, _ = data()
    g = Graph.somatize(Standardize() >> (drop | Gated(3)) >> Concatenate(2))
    g.fit(x, data()[1][:, :2], epochs=0)
    return g.train().eval()


def as_kind(x: torch.Tensor, kind: str) -> object:
    """Return a tensor, or the same as an array or a list."""
    return {"tensor": x, "array": x.numpy(), "list": x.tolist()}[kind]


@pytest.mark.parametrize("frozen", [False, True])
def test_chunks_give_what_the_whole_gives(g: Graph, frozen: bool) -> None:
    """From the live modules, and from their twins."""
    if frozen:
        g.freeze()
    x, _ = data()
    streamed = g.forward(x, stream=True, chunk_size=10)

    torch.testing.assert_close(streamed, g.forward(x))
    assert not streamed.requires_grad


@pytest.mark.parametrize(
    ("kind", "wanted"), [("tensor", torch.Tensor), ("array", np.ndarray), ("list", list)]
)
def test_outputs_are_of_the_kind_that_came_in(kind: str, wanted: type) -> None:
    """The same mirror as for the whole."""
    x, y = data()
    g = Graph.somatize(Dense(3)).fit(x, y, epochs=0)
    streamed = g.forward(as_kind(x, kind), stream=True, chunk_size=10)

    assert type(streamed) is wanted
    np.testing.assert_allclose(streamed, g.forward(x), rtol=1e-5, atol=1e-6)


def test_each_chunk_may_be_of_another_kind() -> None:
    """Its output is of that kind."""
    x, y = data()
    g = Graph.somatize(Dense(3)).fit(x, y, epochs=0)

    outputs = g.stream(as_kind(x, kind) for kind in ("tensor", "list", "array", "tensor"))
    assert [type(one) for one in outputs] == [torch.Tensor, list, np.ndarray, torch.Tensor]


def test_training_takes_no_stream(g: Graph) -> None:
    """The error says what to call first."""
    g.train()
    with pytest.raises(ModeError, match=r"chunks run in eval only\. Call `g\.freeze\(\)`"):
        g.stream([])
    with pytest.raises(ModeError, match="chunks run in eval only"):
        g.forward(data()[0], stream=True, chunk_size=1)


def test_a_stream_stops_when_training_begins(g: Graph) -> None:
    """Half an output with dropout and half without is nobody's wish."""
    outputs = g.stream(data()[0].split(8))
    next(outputs)
    g.train()

    with pytest.raises(ModeError, match="chunks run in eval only"):
        next(outputs)


def test_a_module_has_to_be_built() -> None:
    """The error comes before anything is pulled."""
    with pytest.raises(NotMaterialized, match="`dense`"):
        Graph.somatize(Dense(3)).stream([])


def test_a_module_does_not_evolve() -> None:
    """Its weights are its state."""

    class Moves(Dense):
        _stream_mode = "evolving"

        def update(self, state, chunk):
            return state

    x, y = data()
    g = Graph.somatize(Moves(3)).fit(x, y, epochs=0)
    with pytest.raises(InvalidInput, match="weights of a module do not move on"):
        g.stream([x])


class Ranks(Filter):
    """Needs all rows at once."""

    _stream_mode = "barrier"

    def forward(self, x, state):
        return x.argsort(0).float()


def test_a_module_behind_a_barrier_sees_all_rows() -> None:
    """As it does of the whole."""
    x, y = data()
    g = Graph.somatize(Dense(4) >> Ranks() >> Dense(3)).fit(x, y, epochs=0)

    torch.testing.assert_close(g.forward(x, stream=True, chunk_size=10), g.forward(x))


def test_a_stream_inside_a_context_is_refused(g: Graph) -> None:
    """As any forward of eval is."""
    with g.context(), pytest.raises(ModeError, match=r"inside `g\.context\(\)`"):
        g.stream([])

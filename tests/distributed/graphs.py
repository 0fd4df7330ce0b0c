"""Graphs that may have nodes on workers, and one training loop for all of them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import StepLR

from soma import DifferentiableFilter, Filter, Graph
from tests.training.filters import Concatenate, Dense, Gated

torch.manual_seed(3)
X, Y = torch.randn(24, 5), torch.randn(24, 2)

Make = Callable[[Callable[[Filter, int], object]], object]


class Square(Filter):
    """A plain filter that no gradient passes."""

    _kind = "opaque"

    def fit(self, x: Tensor, y: object = None) -> Tensor:
        return x.mean(0)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        return (x - state) ** 2


# Each gets a function that places a filter at worker 1 or 2, or leaves it here.
GRAPHS: dict[str, Make] = {
    "chain in two": lambda at: Dense(6, nn.Tanh) >> at(Dense(2), 1),
    "chain in three": lambda at: at(Dense(6, nn.ReLU), 1) >> at(Dense(7, nn.Tanh), 2) >> Dense(2),
    "branch of a fork": lambda at: (
        Dense(6) >> (at(Dense(4), 1) | Dense(4, nn.Tanh)) >> Concatenate(2)
    ),
    "fan-in": lambda at: Dense(6) >> (Gated(4) | Dense(4)) >> at(Concatenate(2), 2),
    "own forward": lambda at: Dense(6) >> at(Gated(4), 2) >> Dense(2),
    "opaque": lambda at: at(Square(), 1) >> Dense(6, nn.ReLU) >> at(Dense(2), 1),
    "two on one": lambda at: at(Dense(6, nn.Tanh), 1) >> at(Dense(2), 1),
}

OPTIMIZERS: dict[str, Callable[[Graph], object]] = {
    "adam": lambda g: g.make_optimizer(Adam, lr=0.01),
    "adamw": lambda g: g.make_optimizer(AdamW, lr=0.01, weight_decay=0.1),
    "momentum": lambda g: g.make_optimizer(SGD, lr=0.05, momentum=0.9, nesterov=True),
    "groups": lambda g: g.set_optimizer(SGD(_groups(g), lr=0.05, momentum=0.5)),
    "several": lambda g: g.set_optimizer(
        {name: Adam(one["params"], lr=0.01) for name, one in zip("ab", _groups(g), strict=True)}
    ),
}


def _groups(g: Graph) -> list[dict[str, object]]:
    weights = list(g.parameters())
    return [{"params": weights[0::2], "lr": 0.02}, {"params": weights[1::2]}]


def made(make: Make, names: tuple[str, ...] = ()) -> Graph:
    """Return a graph, built; its nodes are on workers where names are given."""
    torch.manual_seed(0)

    def at(filter: Filter, number: int) -> object:
        return filter.at(names[number - 1]) if names else filter

    g = Graph.somatize(make(at))
    return g.fit(X, epochs=0) if "Square" in str(g.filters()) else g.materialize(X)


def trained(
    g: Graph,
    optimize: Callable[[Graph], object],
    *,
    steps: int = 20,
    clip: float | None = None,
    schedule: bool = False,
) -> list[float]:
    """Train a graph in the usual loop; return the loss of each step, and what was clipped."""
    g.materialize(X)
    g.train()
    optimize(g)
    optimizer = g.optimizer()
    every = optimizer.values() if isinstance(optimizer, dict) else [optimizer]
    schedulers = [StepLR(one, step_size=5) for one in every] if schedule else []
    told = []
    for _ in range(steps):
        with g.context() as ctx:
            g.zero_grad()
            output, aux = g.forward(X)
            loss = nn.functional.mse_loss(output, Y)
            for one in aux.values():
                loss = loss + 0.1 * one["gate"].abs().mean()
            g.backward(ctx, loss)
        if clip is not None:
            told.append(float(g.clip_gradients(clip)))
        g.step(ctx)
        for scheduler in schedulers:
            scheduler.step()
        told.append(loss.item())
    return told


def weights(g: Graph) -> dict[str, Tensor]:
    """Return all weights by `node.name`."""
    return {
        f"{node}.{name}": one
        for node, found in g.state().items()
        if isinstance(found, dict)
        for name, one in found.items()
    }


class Normed(DifferentiableFilter):
    """Batch normalisation, with a buffer that no file keeps, and state that is no tensor."""

    def build_module(self, input_shape: Any) -> nn.Module:
        return Counted(input_shape[-1])


class Counted(nn.BatchNorm1d):
    """Counts its calls in training, in two ways."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.register_buffer("passing", torch.zeros(1), persistent=False)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += self.training
        self.passing += self.training
        return super().forward(x)

    def get_extra_state(self) -> int:
        return self.calls

    def set_extra_state(self, state: int) -> None:
        self.calls = state


class Tied(DifferentiableFilter):
    """An autoencoder whose halves share one weight, with dropout between them."""

    def build_module(self, input_shape: Any) -> nn.Module:
        first, second = nn.Linear(input_shape[-1], input_shape[-1]), nn.Linear(*input_shape * 2)
        second.weight = first.weight
        return nn.Sequential(first, nn.Dropout(0.5), second)


class Reading(DifferentiableFilter):
    """Reads a tensor, a tuple or a dict of tensors of any type."""

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Linear(5, 2)

    def forward(self, x: Any, state: object = None) -> Any:
        parts = list(x.values()) if isinstance(x, dict) else x if isinstance(x, tuple) else [x]
        return self._module(sum(torch.as_tensor(part).float() for part in parts)), {}

"""Graphs that are well or sick in one way each, with nodes that may be on workers."""

import os
from collections.abc import Callable
from signal import SIGKILL
from weakref import ref

import torch
from torch import Tensor, nn

from soma import DifferentiableFilter, Graph
from soma.audit import Audit
from tests.distributed.graphs import X, Y, made
from tests.training.filters import Concatenate, Dense, Gated


class Dead(DifferentiableFilter):
    """A layer whose ReLU lets nothing through."""

    def build_module(self, input_shape):
        linear = nn.Linear(input_shape[-1], 6)
        nn.init.constant_(linear.bias, -100.0)
        return nn.Sequential(linear, nn.ReLU())


class Shrinking(DifferentiableFilter):
    """Layers that hardly any gradient comes through."""

    def build_module(self, input_shape):
        layers = [nn.Linear(input_shape[-1], 6), *(nn.Linear(6, 6) for _ in range(3))]
        for one in layers:
            nn.init.normal_(one.weight, std=0.03)
        return nn.Sequential(*(part for one in layers for part in (one, nn.Tanh())))


class Growing(DifferentiableFilter):
    """Layers that gradients grow in."""

    def build_module(self, input_shape):
        layers = [nn.Linear(input_shape[-1], 6), *(nn.Linear(6, 6) for _ in range(5))]
        for one in layers:
            nn.init.normal_(one.weight, std=30.0)
        return nn.Sequential(*layers)


class Logarithm(nn.Module):
    """The logarithm, also of what is below 0."""

    def forward(self, x: Tensor) -> Tensor:
        return x.log()


class Broken(DifferentiableFilter):
    """A layer that makes a NaN in its forward."""

    def build_module(self, input_shape):
        return nn.Sequential(nn.Linear(input_shape[-1], 6), Logarithm())


class Rooted(nn.Module):
    """A root at 0, whose gradient is not finite."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * 0).sqrt() + x


class BrokenBack(DifferentiableFilter):
    """A layer that makes a NaN in its backward."""

    def build_module(self, input_shape):
        return nn.Sequential(nn.Linear(input_shape[-1], 6), Rooted(), nn.Tanh())


# Each gets a function that places a filter at worker 1 or 2, or leaves it here.
SICK: dict[str, Callable[..., object]] = {
    "healthy": lambda at: Dense(6, nn.Tanh) >> at(Dense(6, nn.Tanh), 1) >> Dense(2),
    "healthy, all away": lambda at: at(Dense(6, nn.Tanh), 1) >> at(Dense(2), 2),
    "branches": lambda at: Dense(6) >> (at(Gated(4), 1) | Dense(4)) >> at(Concatenate(2), 2),
    "dead": lambda at: Dense(6, nn.Tanh) >> at(Dead(), 1) >> Dense(2),
    "vanishing": lambda at: at(Shrinking(), 1) >> at(Shrinking(), 2) >> Dense(2),
    "exploding": lambda at: at(Growing(), 1) >> Dense(2),
    "nan forward": lambda at: Dense(6) >> at(Broken(), 1) >> at(Dense(2), 2),
    "nan backward": lambda at: at(Dense(6), 1) >> at(BrokenBack(), 2) >> Dense(2),
    "no gradient": lambda at: at(Dense(6), 1) >> Cutting(),
    "nan here": lambda at: at(Dense(6), 1) >> Broken() >> at(Dense(2), 2),
}


class Cut(nn.Module):
    """A layer that passes no gradient on."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.detach())


class Cutting(DifferentiableFilter):
    """What comes before it gets no gradient."""

    def build_module(self, input_shape):
        return Cut(input_shape[-1])


class Witness(nn.Module):
    """Tells how many tensors of its calls in training are still alive, and its hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 2)
        self.register_buffer("alive", torch.zeros(()))
        self.register_buffer("hooks", torch.zeros(()))
        self._seen: list[ref[Tensor]] = []

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x).tanh()
        self.alive.fill_(sum(one() is not None for one in self._seen))
        if torch.is_grad_enabled():
            self._seen += [ref(x), ref(y)]
        inside = [self.linear.weight._post_accumulate_grad_hooks, self.linear._forward_hooks]
        self.hooks.fill_(sum(len(one or ()) for one in inside))
        return y


class Witnessed(DifferentiableFilter):
    """A node that a `Witness` is in."""

    def build_module(self, input_shape):
        return Witness()


class Mortal(nn.Module):
    """Ends its process in its tenth forward, unless that is this one."""

    def __init__(self, home: int) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 6)
        self.left = 10
        self.home = home

    def forward(self, x: Tensor) -> Tensor:
        self.left -= 1
        if self.left < 0 and os.getpid() != self.home:
            os.kill(os.getpid(), SIGKILL)
        return self.linear(x)


class Dying(DifferentiableFilter):
    """A node that takes its worker with it."""

    def build_module(self, input_shape):
        return Mortal(self.home)


def train(
    g: Graph,
    steps: int = 12,
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.mse_loss,
    x: Tensor = X,
) -> Graph:
    """Train a graph in the usual loop."""
    g.train()
    for _ in range(steps):
        with g.context() as ctx:
            g.zero_grad()
            output, _ = g.forward(x)
            g.backward(ctx, loss(output, Y))
        g.step(ctx)
    return g


def audited(
    make: Callable[..., object],
    names: tuple[str, ...] = (),
    *,
    frozen: str = "",
    audit: dict[str, object] | None = None,
    **training: object,
) -> Audit:
    """Return the audit of a training; nodes are on workers where names are given.

    Args:
        frozen: what names of parameters begin with that are not trained.
    """
    g = made(make, names)
    for name, parameter in g.named_parameters():
        parameter.requires_grad_(not frozen or not name.startswith(frozen))
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.gradient_audit(**{"budget": None, "inside": True} | (audit or {})) as found:
        train(g, **training)
    return found

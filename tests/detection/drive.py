"""Trains a run in plain torch; whoever wants to look may."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import SGD, Optimizer

from tests.detection.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Factors on the loss and on the data that, compensated, leave the weights' path as it is."""

    loss: float = 1.0
    data: float = 1.0


class Watcher:
    """Looks at a training and does nothing."""

    def begin(self, run: Run, net: nn.Module, optimizers: tuple[Optimizer, ...]) -> None:
        """Look at the network before the first step."""

    def turn(self, part: int, batches: list[tuple[Tensor, Tensor]], step: int) -> None:
        """Look before the gradients of one optimizer's step are taken."""

    def ready(self, part: int, loss: float, step: int) -> None:
        """Look at the gradients that backward left."""

    def stepped(self, part: int, step: int) -> None:
        """Look at the weights after the optimizer's step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What does the parts of a step: plain torch, or something in its place."""

    net: Any  # what the loss calls
    zero: Callable[[Optimizer], object] = Optimizer.zero_grad
    backward: Callable[[Tensor], object] = Tensor.backward
    step: Callable[[Optimizer], object] = lambda optimizer: optimizer.step()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainee:
    """A network, what trains it and what it is trained on."""

    run: Run
    nodes: dict[str, nn.Module]
    net: nn.Module
    optimizers: tuple[Optimizer, ...]
    x: Tensor
    y: Tensor
    seed: int
    scale: Scale


def prepare(run: Run, seed: int, scale: Scale = Scale()) -> Trainee:  # frozen
    """Build a run's network, data and optimizers."""
    torch.manual_seed(seed)
    built = run.build()
    nodes = built if isinstance(built, dict) else {"net": built}
    net = nn.ModuleDict(built) if isinstance(built, dict) else built
    x, y = run.data(Generator().manual_seed(seed + 7_919))
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name in run.first and scale.data != 1.0:
                parameter.div_(scale.data)
    optimizers = run.optimizers(net)
    for optimizer in optimizers:
        _compensate(optimizer, run, net, scale)
    if scale.data != 1.0:
        x = x * scale.data
    return Trainee(
        run=run, nodes=nodes, net=net, optimizers=optimizers, x=x, y=y, seed=seed, scale=scale
    )


def train(
    trainee: Trainee, watcher: Watcher | None = None, hands: Hands | None = None
) -> list[float]:
    """Train, and return the loss of each step."""
    run, net, watch = trainee.run, trainee.net, watcher or Watcher()
    hands = hands or Hands(net=net)
    watch.begin(run, net, trainee.optimizers)
    schedules = [run.schedule(one) for one in trainee.optimizers] if run.schedule else []
    torch.manual_seed(trainee.seed + 1)
    losses: list[float] = []
    for step in range(run.steps):
        batches = list(_batches(trainee, step))
        for part, group in enumerate(_turns(trainee)):
            watch.turn(part, batches, step)
            if run.zeroes:
                for optimizer in group:
                    hands.zero(optimizer)
            total = 0.0
            for x, y in batches:
                loss = loss_of(trainee, part, hands.net, x, y, step) / len(batches)
                hands.backward(loss)
                total += float(loss.detach())
            watch.ready(part, total, step)
            if run.clip is not None:
                nn.utils.clip_grad_norm_(net.parameters(), run.clip * trainee.scale.loss)
            for optimizer in group:
                hands.step(optimizer)
            if run.after is not None:
                run.after(net)
            watch.stepped(part, step)
            if part == 0:
                losses.append(total)
        for schedule in schedules:
            schedule.step()
    return losses


def _turns(trainee: Trainee) -> list[tuple[Optimizer, ...]]:
    """Each loss has an optimizer of its own, or one loss has them all."""
    if len(trainee.run.losses) == 1:
        return [trainee.optimizers]
    return [(one,) for one in trainee.optimizers]


def loss_of(trainee: Trainee, part: int, net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Return the loss of one batch, as it is given to `backward`."""
    run = trainee.run
    context: AbstractContextManager[object] = nullcontext()
    if run.autocast:
        context = torch.autocast("cpu", torch.bfloat16)
    with context:
        loss = run.losses[part](net, x, y, step)
    return loss if trainee.scale.loss == 1.0 else loss * trainee.scale.loss


def _batches(trainee: Trainee, step: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Walk over the data in order, round and round."""
    size = min(trainee.run.batch, len(trainee.x))
    for part in range(trainee.run.micro):
        start = (step * trainee.run.micro + part) * size
        rows = torch.arange(start, start + size) % len(trainee.x)
        yield trainee.x[rows], trainee.y[rows]


def _compensate(optimizer: Optimizer, run: Run, net: nn.Module, scale: Scale) -> None:
    """Change rates so that the weights take the same path under a scale."""
    if scale == Scale():
        return
    names = {id(one): name for name, one in net.named_parameters()}
    groups = []
    for group in optimizer.param_groups:
        first = [one for one in group["params"] if names.get(id(one)) in run.first]
        rest = [one for one in group["params"] if names.get(id(one)) not in run.first]
        for parameters, factor in ((rest, 1.0), (first, scale.data)):
            if parameters:
                groups.append(
                    {**group, "params": parameters, **_rates(optimizer, group, scale, factor)}
                )
    optimizer.param_groups[:] = groups


def _rates(
    optimizer: Optimizer, group: dict[str, float], scale: Scale, factor: float
) -> dict[str, float]:
    if isinstance(optimizer, SGD):
        return {"lr": group["lr"] / scale.loss / factor**2}
    return {"lr": group["lr"] / factor, "eps": group["eps"] * scale.loss * factor}


def is_falling(values: list[float]) -> bool:
    """Are the last values clearly below the first ones?"""
    quarter = max(len(values) // 4, 1)
    begun, now = sum(values[:2]) / 2, sum(values[-quarter:]) / quarter
    return math.isfinite(now) and begun - now > 0.1 * abs(begun)

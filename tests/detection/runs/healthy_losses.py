"""Healthy runs whose losses, data or outputs look sick to a fixed limit."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.detection.parts import (
    adam,
    blobs,
    chain,
    dense,
    each,
    entropy,
    sgd,
    smooth,
    squares,
    times,
    two_rates,
    with_,
)
from tests.detection.run import Run


class Rounded(nn.Module):
    """Rounds to tenths, and hands the gradient through."""

    def forward(self, x: Tensor) -> Tensor:
        return x + (torch.round(x * 10) / 10 - x).detach()


def margins(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A hinge loss: exactly 0, with its gradient, for a batch that is right by enough."""
    return F.multi_margin_loss(net(x), y)


def likelihood(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Minus the log-likelihood of a normal distribution: it falls below 0."""
    mean, log = net(x).chunk(2, 1)
    return (0.5 * log + 0.5 * (y - mean).square() * (-log).exp()).mean() - 0.3


def reward(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A policy's loss: its value says nothing, as rewards are taken about their mean."""
    logits = net(x)
    taken = torch.multinomial(logits.detach().softmax(-1), 1)[:, 0]
    gain = (taken == y).float()
    chosen = logits.log_softmax(-1).gather(1, taken[:, None])[:, 0]
    return -(chosen * (gain - gain.mean())).mean()


def wrongs(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The chance that the policy is wrong."""
    return 1 - net(x).softmax(-1).gather(1, y[:, None]).mean()


def sorted_blobs(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Clouds, one class after the other."""
    x, y = blobs(classes=4)(random)
    order = torch.argsort(y, stable=True)
    return x[order], y[order]


def half_empty(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs of which the last third is never set and the rest is mostly 0."""
    x, y = smooth(12)(random)
    x = x * (torch.rand(x.shape, generator=random) < 0.3)
    return F.pad(x, (0, 6)), y


def from_teacher(noise: float, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Targets that the network of `student` makes itself, but for little noise."""
    x = torch.randn(256, 8, generator=random)
    with torch.no_grad():
        return x, student()(x) + noise * torch.randn(256, 2, generator=random)


def student() -> nn.Module:
    """A network that is always the same."""
    with torch.random.fork_rng([]):
        torch.manual_seed(5)
        return dense(8, 16, 2)


def deep_linear() -> nn.Module:
    """Three layers without an activation, which can solve what a matrix solves."""
    return dense(8, 8, 8, 2, act=nn.Identity)


def by_matrix(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Targets that a matrix makes of the inputs."""
    x = torch.randn(64, 8, generator=random)
    return x, x @ torch.randn(8, 2, generator=random)


def in_millions(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs of a million and targets of 1."""
    x, y = smooth()(random)
    return 1e6 * x, y


def lucky(net: nn.Sequential) -> nn.Module:
    """A ReLU network whose units all fire for something."""
    return each(net, nn.Linear, lambda one: one.bias.add_(0.5))


def weigh(factor: float) -> nn.Module:
    """A network whose first layer takes back a factor of its input."""
    return with_(dense(12, 24, 24, 3), lambda net: net.fc0.weight.div_(factor))


FC0 = ("fc0.weight",)


RUNS = (
    Run(
        name="loss_in_billionths",
        kind="mlp",
        why="gradients of 1e-9 at a rate of 1e8",
        build=lambda: dense(12, 24, 24, 3),
        data=smooth(),
        losses=(times(squares, 1e-9),),
        optimizers=sgd(2e8),
        first=FC0,
    ),
    Run(
        name="inputs_in_millions",
        kind="mlp",
        why="weights of 1e-7 move by 1e-8",
        build=lambda: weigh(1e6),
        data=in_millions,
        losses=(squares,),
        optimizers=two_rates(torch.optim.Adam, 2e-8, 2e-2, "fc0.weight"),
        first=FC0,
        steps=40,
    ),
    Run(
        name="solved_from_the_start",
        kind="mlp",
        why="gradients are those of noise of 1e-4",
        build=student,
        data=partial(from_teacher, 1e-4),
        losses=(squares,),
        optimizers=sgd(0.1),
        converged=True,
        batch=64,
        first=FC0,
    ),
    Run(
        name="solved_to_the_last_bit",
        kind="mlp",
        why="after 60 steps only rounding is left",
        build=deep_linear,
        data=by_matrix,
        losses=(squares,),
        optimizers=sgd(0.1),
        steps=160,
        first=FC0,
    ),
    Run(
        name="most_units_dropped",
        kind="mlp",
        why="dropout leaves a fifth of what ReLU left",
        build=lambda: lucky(
            chain(fc0=nn.Linear(12, 48), act0=nn.ReLU(), drop=nn.Dropout(0.8), out=nn.Linear(48, 4))
        ),
        data=blobs(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        first=FC0,
    ),
    Run(
        name="inputs_mostly_zero",
        kind="mlp",
        why="weights of inputs never set get no gradient",
        build=lambda: dense(18, 32, 3),
        data=half_empty,
        losses=(squares,),
        optimizers=adam(1e-2),
        steps=50,
        first=FC0,
    ),
    Run(
        name="one_class_a_batch",
        kind="mlp",
        why="each batch holds one class alone",
        build=lambda: dense(12, 24, 4),
        data=sorted_blobs,
        losses=(entropy,),
        steps=60,
        batch=16,
        optimizers=sgd(0.05),
        score=lambda net, x, y: F.cross_entropy(net(x), y),
        first=FC0,
    ),
    Run(
        name="smoothed_labels_solved",
        kind="mlp",
        why="the loss has a floor far above 0",
        build=lambda: dense(12, 24, 4),
        data=blobs(apart=1.5),
        steps=60,
        optimizers=adam(1e-2),
        losses=(lambda net, x, y, step: F.cross_entropy(net(x), y, label_smoothing=0.2),),
        first=FC0,
    ),
    Run(
        name="margins_kept",
        kind="mlp",
        why="most batches have a loss and a gradient of exactly 0",
        build=lambda: dense(12, 24, 4),
        data=blobs(apart=3.0),
        losses=(margins,),
        steps=60,
        optimizers=adam(1e-2),
        first=FC0,
    ),
    Run(
        name="loss_below_zero",
        kind="mlp",
        why="a likelihood starts near 0 and goes below it",
        build=lambda: dense(8, 16, 4),
        data=partial(from_teacher, 0.1),
        losses=(likelihood,),
        optimizers=adam(1e-2),
        steps=60,
        first=FC0,
    ),
    Run(
        name="policy_gradient",
        kind="mlp",
        why="the loss is noise about 0 all along",
        build=lambda: dense(12, 24, 4),
        data=blobs(),
        losses=(reward,),
        optimizers=adam(1e-2),
        steps=80,
        score=wrongs,
        first=FC0,
    ),
    Run(
        name="rounded_straight_through",
        kind="mlp",
        why="a step function is in the way",
        build=lambda: chain(
            fc0=nn.Linear(12, 24), act0=nn.Tanh(), round=Rounded(), out=nn.Linear(24, 3)
        ),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        first=FC0,
    ),
)

"""Runs in which the gradient grows over depth or over time."""

from functools import partial

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from tests.detection.parts import (
    adam,
    convolve,
    dense,
    each,
    entropy,
    pictures,
    sgd,
    sines,
    smooth,
    squares,
    times,
    waves,
    with_,
)
from tests.detection.run import Label, Run
from tests.detection.runs.sick_fading import Begun, small


def rare(random: Generator, size: float = 6.0) -> tuple[Tensor, Tensor]:
    """Counts, and one input of the thirteenth batch that is far from all others."""
    x = torch.randn(32 * 24, 8, generator=random) * 0.5
    x[12 * 32] = size
    return x, torch.poisson(
        torch.exp(1.5 + x[:, :2].clamp(max=1).sum(1, keepdim=True)), generator=random
    )


def counts(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A Poisson likelihood of counts."""
    return F.poisson_nll_loss(net(x), y)


def sized(net: nn.Module, size: float) -> nn.Module:
    """Linear layers with weights of one size over what keeps the scale."""
    return each(net, nn.Linear, lambda one: one.weight.normal_(0, size / one.in_features**0.5))


GROW = (("*", "EXPLODING"), ("*", "LR_LOW"), ("*", "FROZEN"))


BAD = tuple(
    ("*", flag) for flag in ("NAN", "INF", "FROZEN", "EXPLODING", "VANISHING", "LR_HIGH", "LR_LOW")
)


RUNS = (
    Run(
        name="layers_five_times_too_large",
        kind="mlp",
        why="nine layers, each five times too large",
        scales=True,
        build=lambda: sized(dense(12, *[24] * 9, 3, act=partial(nn.LeakyReLU, 0.5)), 5.0),
        data=smooth(),
        losses=(squares,),
        optimizers=sgd(1e-22),
        steps=15,
        first=("fc0.weight",),
        labels=(Label(unit="net/fc0", flag="EXPLODING", also=("net/act0", "net/fc1")),),
        allowed=GROW,
        cure={
            "build": lambda: sized(dense(12, *[24] * 9, 3, act=partial(nn.LeakyReLU, 0.5)), 1.2),
            "optimizers": adam(3e-3),
            "steps": 30,
        },
    ),
    Run(
        name="state_that_grows",
        kind="rnn",
        why="the first state is turned and stretched thirty times; the loss in millionths",
        build=lambda: Begun(2.1, "relu"),
        data=waves(40),
        losses=(times(entropy, 1e-6),),
        optimizers=sgd(1e-6),
        batch=32,
        steps=12,
        labels=(Label(unit="net/begin", flag="EXPLODING", also=("net/rnn",)),),
        allowed=(*GROW, ("net/rnn", "COLLAPSE")),
        cure={
            "build": lambda: Begun(1.0),
            "losses": (entropy,),
            "data": waves(8),
            "optimizers": adam(1e-2),
            "steps": 30,
        },
    ),
    Run(
        name="large_convolutions",
        kind="cnn",
        why="six convolutions without norms, each far too large",
        build=lambda: small(convolve(2, *[8] * 6, norm=False, act=nn.LeakyReLU), 20.0),
        data=pictures(),
        losses=(entropy,),
        optimizers=sgd(1e-20),
        batch=32,
        steps=12,
        first=("conv0.weight",),
        labels=(Label(unit="net/conv0", flag="EXPLODING", also=("net/act0", "net/conv1")),),
        allowed=GROW,
        cure={
            "build": lambda: small(convolve(2, *[8] * 6, norm=False, act=nn.LeakyReLU), 1.4),
            "optimizers": adam(1e-2),
            "steps": 40,
        },
    ),
    Run(
        name="rate_that_diverges",
        kind="autoencoder",
        why="each step overshoots further, until nothing is a number",
        build=lambda: dense(12, 12, 12, act=nn.Identity),
        data=sines(),
        losses=(times(squares, 12.0),),
        optimizers=sgd(1.0),
        steps=25,
        labels=(
            Label(unit="net", flag="LR_HIGH", also=("net/fc0", "net/out")),
            Label(unit="net", flag="EXPLODING", also=("net/fc0", "net/out")),
        ),
        allowed=(*BAD, ("*", "COLLAPSE")),
        cure={"optimizers": sgd(0.02)},
        first=("fc0.weight",),
    ),
    Run(
        name="rates_in_an_exponent",
        kind="mlp",
        why="one rare large input makes a gradient ten thousand times the usual",
        build=lambda: with_(
            dense(8, 16, 1, act=nn.LeakyReLU),
            lambda net: (net.fc0.weight.abs_(), net.out.weight.abs_()),
        ),
        data=rare,
        losses=(counts,),
        optimizers=sgd(1e-3),
        batch=32,
        steps=24,
        labels=(Label(unit="net", flag="EXPLODING", step=12),),
        allowed=(*BAD, ("*", "SATURATED")),
        cure={"data": partial(rare, size=1.0), "optimizers": adam(2e-2), "steps": 48},
        scales=False,
    ),
)

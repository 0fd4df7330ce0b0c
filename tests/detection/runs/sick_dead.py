"""Runs in which units never fire."""

from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from tests.detection.parts import (
    Reader,
    adam,
    blobs,
    chain,
    convolve,
    dense,
    entropy,
    pictures,
    sgd,
    sines,
    smooth,
    squares,
    with_,
    words,
)
from tests.detection.run import Label, Run

relus = partial(dense, act=nn.ReLU)


class Mixed(nn.Module):
    """Four experts of two layers, weighed by a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(12, 4), nn.Softmax(-1))
        self.experts = nn.ModuleList(relus(12, 16, 3) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        answers = torch.stack([one(x) for one in self.experts], 1)
        return (self.gate(x)[:, :, None] * answers).sum(1)


def coder() -> nn.Module:
    """An autoencoder with a code of ten."""
    return chain(
        fc0=nn.Linear(12, 24),
        act0=nn.Tanh(),
        fc1=with_(nn.Linear(24, 10), lambda one: one.bias.fill_(0.5)),
        act1=nn.ReLU(),
        fc2=nn.Linear(10, 24),
        act2=nn.Tanh(),
        out=nn.Linear(24, 12),
    )


def normed() -> nn.Module:
    """A norm between a layer and its activation."""
    return chain(
        fc0=nn.Linear(12, 24, bias=False),
        norm0=nn.BatchNorm1d(24),
        act0=nn.ReLU(),
        out=nn.Linear(24, 4),
    )


def far_below(random: Generator) -> tuple[Tensor, Tensor]:
    """Targets that are all far below 0."""
    x = 0.3 * torch.randn(256, 8, generator=random)
    return x, -6 + 0.2 * torch.randn(256, 1, generator=random)


def spike(optimizer: Optimizer) -> LambdaLR:
    """A rate that is too large in one step."""
    return LambdaLR(optimizer, lambda step: 4_000.0 if step == 6 else 1.0)


def firing(net: Any) -> Any:
    """A ReLU network whose units all fire for something."""

    def lift(one: Any) -> None:
        for module in one.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)) and module.bias is not None:
                module.bias.add_(0.3)

    return with_(net, lift)


def kill(net: Any, layer: Any, channels: slice, bias: float = -14.0) -> Any:
    """Push units of a layer so far down that nothing lifts them up."""
    return with_(net, lambda one: layer(one).bias[channels].fill_(bias))


ALL = slice(None)


SIDE = (
    ("*", "VANISHING"),
    ("*", "IGNORED_CHANNELS"),
    ("*", "FROZEN"),
    ("*", "COLLAPSE"),
    ("*", "LR_LOW"),
)


RUNS = (
    Run(
        name="convolution_switched_off",
        kind="cnn",
        why="biases of -14 after an update gone wrong",
        build=lambda: kill(convolve(2, 8, 8, norm=False), lambda net: net.conv1, ALL),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        batch=32,
        steps=20,
        labels=(Label(unit="net/act1", flag="DEAD"),),
        allowed=(*SIDE, ("*", "LR_HIGH")),
        cure={
            "build": lambda: convolve(2, 8, 8, norm=False, act=nn.LeakyReLU),
            "optimizers": adam(1e-2),
            "steps": 40,
        },
        first=("conv0.weight",),
    ),
    Run(
        name="feed_forward_switched_off",
        kind="transformer",
        why="none of a layer's inner units fires; the residual way hides it",
        build=lambda: kill(Reader(act=nn.ReLU), lambda net: net.layers[1].up, ALL),
        data=words(),
        losses=(entropy,),
        optimizers=adam(3e-3),
        batch=32,
        steps=20,
        labels=(Label(unit="net/layers.1.act", flag="DEAD"),),
        allowed=SIDE,
        cure={"build": lambda: Reader()},
    ),
    Run(
        name="expert_switched_off",
        kind="moe",
        why="one of four experts answers with its last bias alone",
        build=lambda: kill(firing(Mixed()), lambda net: net.experts[2].fc0, ALL),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        labels=(Label(unit="net/experts.2.act0", flag="DEAD"),),
        allowed=SIDE,
        cure={"build": lambda: firing(Mixed())},
    ),
    Run(
        name="five_of_twelve_channels",
        kind="cnn",
        why="five channels of a convolution never fire",
        build=lambda: kill(
            firing(convolve(2, 12, 8, norm=False)), lambda net: net.conv0, slice(3, 8)
        ),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        batch=32,
        steps=20,
        labels=(Label(unit="net/act0", flag="DEAD_CHANNELS", count=5),),
        allowed=(("net/conv0", "IGNORED_CHANNELS"),),
        first=("conv0.weight",),
        cure={
            "build": lambda: firing(convolve(2, 12, 8, norm=False)),
            "optimizers": adam(3e-3),
            "steps": 40,
        },
    ),
    Run(
        name="nine_inner_units",
        kind="transformer",
        why="nine of forty-eight inner units of GELU are off for good",
        build=lambda: kill(Reader(), lambda net: net.layers[0].up, slice(20, 29)),
        data=words(),
        losses=(entropy,),
        optimizers=adam(3e-3),
        batch=32,
        steps=20,
        labels=(Label(unit="net/layers.0.act", flag="DEAD_CHANNELS", count=9),),
        allowed=(("net/layers.0.up", "IGNORED_CHANNELS"),),
        cure={"build": lambda: Reader()},
    ),
    Run(
        name="code_with_dead_units",
        kind="autoencoder",
        why="three of ten units of a code never fire",
        build=lambda: kill(coder(), lambda net: net.fc1, slice(0, 3)),
        data=sines(),
        losses=(squares,),
        optimizers=adam(2e-3),
        steps=40,
        labels=(Label(unit="net/act1", flag="DEAD_CHANNELS", count=3),),
        allowed=(("net/fc1", "IGNORED_CHANNELS"),),
        cure={"build": lambda: coder()},
        first=("fc0.weight",),
    ),
    Run(
        name="norm_that_shifts_down",
        kind="norm",
        why="a BatchNorm's shift keeps four channels below 0",
        build=lambda: kill(normed(), lambda net: net.norm0, slice(10, 14), -9.0),
        data=blobs(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        labels=(Label(unit="net/act0", flag="DEAD_CHANNELS", count=4),),
        allowed=(("net/norm0", "IGNORED_CHANNELS"), ("net/fc0", "IGNORED_CHANNELS")),
        cure={"build": lambda: normed()},
        first=("fc0.weight",),
    ),
    Run(
        name="killed_by_one_step",
        kind="mlp",
        why="one step at a rate of a thousand times the usual",
        build=lambda: with_(relus(8, 24, 1), lambda net: net.out.weight.abs_().add_(0.1)),
        data=far_below,
        losses=(squares,),
        batch=256,
        optimizers=lambda net: (torch.optim.SGD(net.parameters(), lr=1e-3),),
        schedule=spike,
        steps=24,
        labels=(Label(unit="net/act0", flag="DEAD"),),
        allowed=(*SIDE, ("*", "LR_HIGH"), ("*", "EXPLODING"), ("*", "DEAD_CHANNELS")),
        cure={
            "schedule": None,
            "optimizers": sgd(0.02),
            "build": lambda: dense(8, 24, 1, act=nn.LeakyReLU),
        },
        first=("fc0.weight",),
    ),
)

"""Healthy runs of convolutional networks."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from tests.detection.parts import (
    Mean,
    adam,
    chain,
    convolve,
    each,
    entropy,
    itself,
    pictures,
    sgd,
    squares,
    with_,
)
from tests.detection.run import Run


class Branch(nn.Module):
    """A residual block whose last norm starts at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = (
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.act1 = nn.ReLU()
        self.conv2, self.norm2 = (
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.act2 = nn.ReLU()
        nn.init.zeros_(self.norm2.weight)

    def forward(self, x: Tensor) -> Tensor:
        inside = self.norm2(self.conv2(self.act1(self.norm1(self.conv1(x)))))
        return self.act2(x + inside)


class Excite(nn.Module):
    """Scales channels by gates that see the whole picture."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(Mean(2, 3), nn.Linear(width, width), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x)[:, :, None, None]


class Hourglass(nn.Module):
    """An autoencoder with a bridge around its waist."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(2, 8, 3, stride=2, padding=1), nn.Tanh())
        self.waist = nn.Sequential(nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.Tanh())
        self.up = nn.Sequential(nn.ConvTranspose2d(8, 8, 2, stride=2), nn.Tanh())
        self.out = nn.ConvTranspose2d(16, 2, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.down(x)
        return self.out(torch.cat([wide, self.up(self.waist(wide))], 1))


def framed(random: Generator) -> tuple[Tensor, Tensor]:
    """Pictures in wide black frames: nine tenths of each is 0."""
    x, y = pictures(size=5)(random)
    return nn.functional.pad(x, (5, 5, 5, 5)), y


def with_bias(net: Any) -> Any:
    """A ReLU network whose channels all fire for something."""
    return each(net, nn.Conv2d, lambda one: one.bias.add_(0.3))


CONV0 = ("conv0.weight",)

RUNS = (
    Run(
        name="group_norm_silu",
        kind="cnn",
        why="norms within a sample",
        build=lambda: chain(
            conv0=nn.Conv2d(2, 8, 3, padding=1),
            norm0=nn.GroupNorm(2, 8),
            act0=nn.SiLU(),
            conv1=nn.Conv2d(8, 8, 3, padding=1),
            norm1=nn.GroupNorm(2, 8),
            act1=nn.SiLU(),
            pool=Mean(2, 3),
            out=nn.Linear(8, 3),
        ),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        first=CONV0,
    ),
    Run(
        name="residual_norms_from_zero",
        kind="residual",
        why="no branch does anything at first",
        build=lambda: chain(
            conv0=nn.Conv2d(2, 12, 3, padding=1),
            act0=nn.LeakyReLU(0.1),
            blocks=nn.Sequential(*(Branch(12) for _ in range(3))),
            pool=Mean(2, 3),
            out=nn.Linear(12, 3),
        ),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        steps=20,
        first=CONV0,
    ),
    Run(
        name="gates_over_channels",
        kind="cnn",
        why="gates of squeeze and excitation",
        build=lambda: with_bias(
            chain(
                conv0=nn.Conv2d(2, 12, 3, padding=1),
                act0=nn.ReLU(),
                excite=Excite(12),
                conv1=nn.Conv2d(12, 12, 3, padding=1),
                act1=nn.Hardswish(),
                pool=Mean(2, 3),
                out=nn.Linear(12, 3),
            )
        ),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        first=CONV0,
    ),
    Run(
        name="bridge_around_the_waist",
        kind="autoencoder",
        why="most gradient goes by the bridge",
        build=Hourglass,
        data=itself(pictures()),
        losses=(squares,),
        optimizers=adam(1e-2),
        batch=32,
        first=("down.0.weight",),
    ),
    Run(
        name="black_frames",
        kind="cnn",
        why="nine tenths of what goes in, and more after ReLU, is 0",
        build=lambda: with_bias(
            chain(
                conv0=nn.Conv2d(2, 10, 3, padding=1),
                act0=nn.ReLU(),
                pick=nn.MaxPool2d(2),
                conv1=nn.Conv2d(10, 10, 3, padding=1),
                act1=nn.LeakyReLU(),
                pool=Mean(2, 3),
                out=nn.Linear(10, 3),
            )
        ),
        data=framed,
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        steps=40,
        first=CONV0,
    ),
    Run(
        name="rate_of_one_with_norms",
        kind="cnn",
        why="BatchNorm allows a rate of 1",
        build=lambda: convolve(2, 8, 8, act=nn.LeakyReLU),
        data=pictures(),
        losses=(entropy,),
        optimizers=sgd(1.0),
        batch=32,
        first=CONV0,
    ),
    Run(
        name="norm_fed_by_millions",
        kind="cnn",
        why="a BatchNorm takes back a factor of 1e6, gradients before it are tiny",
        build=lambda: with_(
            convolve(2, 8, 8, act=nn.LeakyReLU), lambda net: net.conv1.weight.mul_(1e6)
        ),
        data=pictures(),
        losses=(entropy,),
        batch=32,
        first=CONV0,
        optimizers=lambda net: (
            torch.optim.Adam(
                [
                    {"params": [net.conv1.weight], "lr": 1e4},
                    {
                        "params": [
                            one for name, one in net.named_parameters() if name != "conv1.weight"
                        ]
                    },
                ],
                lr=1e-2,
                eps=1e-16,
            ),
        ),
    ),
)

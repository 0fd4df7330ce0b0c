"""Runs at a wrong learning rate, and runs whose representation collapses."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import CosineAnnealingLR

from tests.detection.parts import (
    Reader,
    adam,
    blobs,
    convolve,
    dense,
    entropy,
    pictures,
    sgd,
    sines,
    squares,
    two_rates,
    waves,
    words,
)
from tests.detection.run import Label, Run
from tests.detection.runs.healthy_parts import Variational, evidence
from tests.detection.runs.sick_still import Reads


class Similar(nn.Module):
    """Two views of a sample, of which one should tell the other."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = dense(12, 24, 8)
        self.guess = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = self.encode(x), self.encode(x + torch.randn_like(x))
        return self.guess(first), second


class Priced(nn.Module):
    """An autoencoder that hands out its code beside what it makes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = dense(12, 16, 4), dense(4, 16, 12)
        with torch.no_grad():
            self.encode.out.weight.mul_(3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encode(x)
        return self.decode(code), code


def alike(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Views should be alike: with nothing against it, all samples become alike."""
    guess, wanted = net(x)
    return F.mse_loss(guess, wanted)


def alike_but_varied(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Views should be alike, and samples should differ."""
    guess, wanted = net(x)
    return F.mse_loss(guess, wanted) + F.relu(1 - wanted.std(0)).mean()


def priced(price: float) -> Any:
    """Reconstruction, and a price on each number of the code."""

    def loss(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
        made, code = net(x)
        return F.mse_loss(made, y) + price * code.square().mean()

    return loss


FAST = tuple(
    ("*", flag)
    for flag in (
        "LR_HIGH",
        "EXPLODING",
        "DEAD",
        "DEAD_CHANNELS",
        "SATURATED",
        "VANISHING",
        "COLLAPSE",
        "IGNORED_CHANNELS",
        "NAN",
        "INF",
    )
)
SLOW = (("*", "FROZEN"),)
FLAT = (("*", "COLLAPSE"), ("*", "VANISHING"), ("*", "DEAD_CHANNELS"), ("*", "LR_LOW"))

RUNS = (
    Run(
        name="pictures_at_rate_one",
        kind="cnn",
        why="Adam at 1 instead of 0.01",
        build=lambda: convolve(2, 12, 12, norm=False, act=nn.LeakyReLU),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1.0),
        batch=32,
        steps=15,
        labels=(Label(unit="net", flag="LR_HIGH", also=("net/conv0", "net/conv1", "net/out")),),
        allowed=FAST,
        cure={"optimizers": adam(1e-2), "steps": 30},
        first=("conv0.weight",),
    ),
    Run(
        name="words_at_a_hundred_times",
        kind="transformer",
        why="Adam at 0.5 instead of 0.005",
        build=lambda: Reader(),
        data=words(),
        losses=(entropy,),
        optimizers=adam(0.5),
        batch=32,
        steps=15,
        labels=(
            Label(
                unit="net",
                flag="LR_HIGH",
                also=("net/layers.0", "net/layers.1", "net/out", "net/embed"),
            ),
        ),
        allowed=FAST,
        cure={"optimizers": adam(5e-3), "steps": 30},
    ),
    Run(
        name="waves_at_rate_two",
        kind="rnn",
        why="Adam at 2 instead of 0.01",
        build=Reads,
        data=waves(),
        losses=(entropy,),
        optimizers=adam(2.0),
        batch=32,
        steps=15,
        labels=(Label(unit="net", flag="LR_HIGH", also=("net/rnn", "net/out")),),
        allowed=FAST,
        cure={"optimizers": adam(1e-2), "steps": 30},
        first=("rnn.weight_ih_l0",),
    ),
    Run(
        name="code_at_rate_forty",
        kind="autoencoder",
        why="SGD at a rate that makes the loss jump about",
        build=lambda: dense(12, 16, 4, 16, 12),
        data=sines(),
        losses=(squares,),
        optimizers=sgd(40.0),
        steps=20,
        labels=(
            Label(unit="net", flag="LR_HIGH", also=("net/fc0", "net/fc1", "net/fc2", "net/out")),
        ),
        allowed=FAST,
        cure={"optimizers": adam(1e-2), "steps": 30},
        first=("fc0.weight",),
    ),
    Run(
        name="words_that_hardly_move",
        kind="embedding",
        why="the rate of the embedding has three noughts too many",
        build=lambda: Reader(1),
        data=words(),
        losses=(entropy,),
        optimizers=two_rates(Adam, 1e-8, 5e-3, "embed"),
        batch=32,
        steps=20,
        labels=(Label(unit="net/embed", flag="LR_LOW", names=("FROZEN",)),),
        allowed=SLOW,
        cure={"optimizers": adam(5e-3)},
    ),
    Run(
        name="convolution_that_hardly_moves",
        kind="cnn",
        why="a rate for each layer, with a wrong exponent for the first",
        build=lambda: convolve(2, 8, 8, act=nn.Tanh, norm=False),
        data=pictures(),
        losses=(entropy,),
        optimizers=two_rates(SGD, 1e-8, 0.3, "conv0"),
        batch=32,
        steps=30,
        labels=(Label(unit="net/conv0", flag="LR_LOW", names=("FROZEN",)),),
        allowed=SLOW,
        cure={"optimizers": adam(1e-2)},
        first=("conv0.weight",),
    ),
    Run(
        name="all_hardly_moves",
        kind="rnn",
        why="Adam at 1e-9 for everything",
        build=Reads,
        data=waves(),
        losses=(entropy,),
        optimizers=adam(3e-9),
        batch=32,
        steps=20,
        labels=(Label(unit="net", flag="LR_LOW", also=("net/rnn", "net/out"), names=("FROZEN",)),),
        allowed=(*SLOW, ("*", "LR_LOW")),
        cure={"optimizers": adam(1e-2), "steps": 30},
        first=("rnn.weight_ih_l0",),
    ),
    Run(
        name="posterior_that_collapses",
        kind="autoencoder",
        why="the price on the code is five hundred times the usual",
        build=Variational,
        data=sines(),
        losses=(evidence(30.0),),
        optimizers=adam(3e-2),
        batch=256,
        steps=60,
        labels=(Label(unit="net/mean", flag="COLLAPSE"),),
        allowed=FLAT,
        cure={"losses": (evidence(0.01),), "optimizers": adam(1e-2)},
    ),
    Run(
        name="views_all_alike",
        kind="siamese",
        why="nothing keeps samples apart, the loss is 0 when all are the same",
        build=Similar,
        data=blobs(),
        losses=(alike,),
        optimizers=adam(2e-2),
        steps=120,
        schedule=lambda one: CosineAnnealingLR(one, 120),
        graph=False,
        labels=(Label(unit="net/encode", flag="COLLAPSE", also=("net/encode.out",)),),
        allowed=FLAT,
        cure={"losses": (alike_but_varied,)},
    ),
    Run(
        name="code_priced_away",
        kind="autoencoder",
        why="a price on the code that no reconstruction is worth",
        build=Priced,
        data=sines(),
        losses=(priced(1_000.0),),
        optimizers=adam(4e-2),
        steps=64,
        schedule=lambda one: CosineAnnealingLR(one, 64),
        graph=False,
        labels=(Label(unit="net/encode", flag="COLLAPSE", also=("net/encode.out",)),),
        allowed=FLAT,
        cure={"losses": (priced(1e-3),), "optimizers": adam(1e-2)},
    ),
)

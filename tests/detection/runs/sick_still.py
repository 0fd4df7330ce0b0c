"""Runs in which trainable weights do not move, and runs that keep old gradients."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from tests.detection.parts import (
    Reader,
    adam,
    blobs,
    convolve,
    dense,
    entropy,
    pictures,
    sgd,
    smooth,
    split,
    squares,
    two_rates,
    waves,
    words,
)
from tests.detection.run import Label, Run
from tests.detection.runs.healthy_parts import away, fool, game, players, shifted, tell


class Coarse(nn.Module):
    """A network in bfloat16, whose norm begins at 1, where the next number is 1.008."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        self.fc, self.norm = nn.Linear(12, 24), nn.RMSNorm(24)
        self.act, self.out = nn.Tanh(), nn.Linear(24, 3)
        self.to(kind)
        self.kind = kind

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.act(self.norm(self.fc(x.to(self.kind)))))


def without(*starts: str, rate: float = 1e-2) -> Any:
    """Adam over all but what somebody forgot."""
    return lambda net: (Adam(split(net, *starts)[1], lr=rate),)


def for_another(part: str, rate: float = 1e-2) -> Any:
    """An optimizer that holds a copy of a part, as after the part was put onto a device anew."""

    def make(net: nn.Module) -> tuple[Optimizer, ...]:
        those, others = split(net, part)
        return (Adam([*others, *deepcopy(those)], lr=rate),)

    return make


class Reads(nn.Module):
    """A recurrent network that tells the class at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.GRU(4, 12, batch_first=True), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0][:, -1])


def restored(net: Any) -> None:
    """Put the encoder's weights back to those that it began with."""
    with torch.no_grad():
        for one, first in zip(net.encoder.parameters(), net.begun, strict=True):
            one.copy_(first)


def one_player(net: Any) -> tuple[Optimizer, ...]:
    """Two optimizers, by a slip both of the critic."""
    critic = net["critic"]
    return Adam(critic.parameters(), lr=5e-3), Adam(critic.parameters(), lr=1e-2)


class Loaded(nn.Module):
    """A network that keeps the weights its encoder began with."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 24), nn.Tanh())
        self.out = nn.Linear(24, 3)
        self.begun = [one.detach().clone() for one in self.encoder.parameters()]

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.encoder(x))


OLD = (("*", "LR_HIGH"), ("*", "EXPLODING"), ("*", "STALE_GRAD"))


RUNS = (
    Run(
        name="head_left_out",
        kind="mlp",
        why="the optimizer was made before the head",
        build=lambda: dense(12, 24, 4),
        data=blobs(),
        losses=(entropy,),
        optimizers=without("out"),
        labels=(Label(unit="net/out", flag="FROZEN"),),
        allowed=(("*", "STALE_GRAD"),),
        cure={"optimizers": adam(1e-2)},
        first=("fc0.weight",),
    ),
    Run(
        name="optimizer_of_a_copy",
        kind="rnn",
        why="the optimizer holds a copy of the recurrent part",
        build=lambda: Reads(),
        data=waves(),
        losses=(entropy,),
        optimizers=for_another("rnn"),
        batch=32,
        labels=(Label(unit="net/rnn", flag="FROZEN"),),
        allowed=(("*", "STALE_GRAD"),),
        cure={"optimizers": adam(1e-2)},
        first=("rnn.weight_ih_l0",),
    ),
    Run(
        name="group_at_rate_nought",
        kind="transformer",
        why="a layer's group has a rate of 0",
        build=lambda: Reader(),
        data=words(),
        losses=(entropy,),
        batch=32,
        steps=20,
        optimizers=two_rates(Adam, 0.0, 5e-3, "layers.0."),
        labels=(
            Label(
                unit="net/layers.0",
                flag="FROZEN",
                also=("net/layers.0.attend", "net/layers.0.up"),
                names=("LR_LOW",),
            ),
        ),
        allowed=(("net/layers.0*", "FROZEN"), ("net/layers.0*", "LR_LOW")),
        cure={"optimizers": adam(5e-3)},
    ),
    Run(
        name="weights_put_back",
        kind="mlp",
        why="a checkpoint is loaded into the encoder after each step",
        build=Loaded,
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        after=restored,
        labels=(Label(unit="net/encoder", flag="FROZEN", also=("net/encoder.0",)),),
        allowed=(),
        cure={"after": None},
        first=(),
        scales=False,
    ),
    Run(
        name="norm_in_bfloat16",
        kind="mixed precision",
        why="a step of a ten-thousandth is lost next to a weight of 1",
        build=lambda: Coarse(torch.bfloat16),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(3e-4),
        labels=(Label(unit="net/norm", flag="FROZEN", names=("LR_LOW",)),),
        allowed=(("*", "LR_LOW"),),
        cure={"build": lambda: Coarse(torch.float32), "optimizers": adam(1e-2)},
        scales=False,
    ),
    Run(
        name="nothing_zeroed",
        kind="mlp",
        why="`zero_grad` is missing",
        build=lambda: dense(12, 24, 3),
        data=smooth(),
        losses=(squares,),
        optimizers=sgd(0.01),
        zeroes=False,
        steps=20,
        labels=(Label(unit="net", flag="STALE_GRAD", also=("net/fc0", "net/out")),),
        allowed=OLD,
        cure={"zeroes": True, "optimizers": adam(1e-2), "steps": 30},
        first=("fc0.weight",),
    ),
    Run(
        name="nothing_zeroed_in_pictures",
        kind="cnn",
        why="`zero_grad` is missing, and Adam hides it",
        build=lambda: convolve(2, 8, 8, act=nn.Tanh),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        zeroes=False,
        batch=32,
        steps=20,
        labels=(Label(unit="net", flag="STALE_GRAD", also=("net/conv0", "net/out")),),
        allowed=OLD,
        cure={"zeroes": True, "optimizers": adam(1e-2), "steps": 30},
        first=("conv0.weight",),
    ),
    Run(
        name="nothing_zeroed_in_words",
        kind="transformer",
        why="`zero_grad` is missing while two batches make a step",
        build=lambda: Reader(1),
        data=words(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        zeroes=False,
        micro=2,
        batch=16,
        steps=20,
        labels=(Label(unit="net", flag="STALE_GRAD", also=("net/out", "net/embed")),),
        allowed=OLD,
        cure={"zeroes": True, "optimizers": adam(5e-3), "steps": 30},
    ),
    Run(
        name="nothing_zeroed_in_a_game",
        kind="gan",
        why="neither player zeroes its gradients",
        build=game,
        data=shifted,
        losses=(tell, fool),
        optimizers=players,
        zeroes=False,
        graph=False,
        steps=20,
        labels=(
            Label(unit="critic", flag="STALE_GRAD", also=("critic/fc0", "critic/out")),
            Label(unit="maker", flag="STALE_GRAD", also=("maker/fc0", "maker/out")),
        ),
        allowed=OLD,
        cure={"zeroes": True, "steps": 60, "score": away},
    ),
    Run(
        name="maker_without_optimizer",
        kind="gan",
        why="both optimizers were given the critic's parameters",
        build=game,
        data=shifted,
        losses=(tell, fool),
        optimizers=one_player,
        graph=False,
        steps=30,
        labels=(Label(unit="maker", flag="FROZEN", also=("maker/fc0", "maker/out")),),
        allowed=(("*", "STALE_GRAD"), ("maker*", "FROZEN"), ("*", "VANISHING")),
        cure={"optimizers": players, "steps": 60, "score": away},
    ),
)

"""Healthy runs in which something rests by choice, or begins as nothing."""

import torch
from torch import Tensor, nn
from torch.optim import SGD

from tests.detection.parts import (
    adam,
    blobs,
    chain,
    dense,
    entropy,
    sgd,
    smooth,
    squares,
    trainable,
    with_,
)
from tests.detection.run import Run


class LowRank(nn.Module):
    """A frozen layer and a small matrix beside it, which begins as 0."""

    def __init__(self, wide: int, next_: int) -> None:
        super().__init__()
        self.base = nn.Linear(wide, next_).requires_grad_(requires_grad=False)
        self.down, self.up = nn.Linear(wide, 3, bias=False), nn.Linear(3, next_, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


class Adapted(nn.Module):
    """A frozen network with small ones in between, which begin as nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.body = dense(12, 24, 24).requires_grad_(requires_grad=False)
        self.adapter = with_(
            dense(24, 6, 24), lambda one: (one.out.weight.zero_(), one.out.bias.zero_())
        )
        self.out = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.body(x)
        return self.out(torch.tanh(seen + self.adapter(seen)))


class Skipping(nn.Module):
    """Residual blocks of which half are left out in a step, by chance."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 24)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(24, 24), nn.Tanh()) for _ in range(6))
        self.out = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        for block in self.blocks:
            if torch.rand(()) < 0.5:
                x = x + block(x)
        return self.out(x)


class Highway(nn.Module):
    """Gates that begin closed, so that a stack of layers begins as nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.change = nn.Sequential(nn.Linear(24, 24), nn.Tanh())
        self.gate = nn.Sequential(nn.Linear(24, 24), nn.Sigmoid())
        nn.init.constant_(self.gate[0].bias, -2.5)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x)
        return gate * self.change(x) + (1 - gate) * x


def backbone() -> nn.Module:
    """A frozen body with a BatchNorm that doesn't learn, and a head that does."""
    body = chain(fc=nn.Linear(12, 24), norm=nn.BatchNorm1d(24), act=nn.Tanh())
    return chain(body=body.requires_grad_(requires_grad=False).eval(), out=nn.Linear(24, 4))


FC = ("fc.weight",)


RUNS = (
    Run(
        name="low_rank",
        kind="adapter",
        why="one half of each pair begins as 0 and gives the other none",
        build=lambda: chain(a=LowRank(12, 24), act=nn.Tanh(), b=LowRank(24, 3)),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(2e-2),
        steps=40,
    ),
    Run(
        name="adapters_from_zero",
        kind="adapter",
        why="frozen by choice around adapters that begin as nothing",
        build=Adapted,
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        steps=40,
    ),
    Run(
        name="head_on_a_frozen_body",
        kind="adapter",
        why="only the last layer learns",
        build=backbone,
        data=blobs(),
        losses=(entropy,),
        optimizers=sgd(0.3),
    ),
    Run(
        name="blocks_left_out",
        kind="residual",
        why="half of the blocks are not called in a step",
        build=Skipping,
        data=smooth(),
        losses=(squares,),
        optimizers=adam(5e-3),
        steps=40,
        first=FC,
    ),
    Run(
        name="gates_begin_closed",
        kind="gated",
        why="gates of 0.08 let little through at first",
        build=lambda: chain(
            fc=nn.Linear(12, 24),
            ways=nn.Sequential(*(Highway() for _ in range(6))),
            out=nn.Linear(24, 3),
        ),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        first=FC,
    ),
    Run(
        name="weights_kept_small",
        kind="mlp",
        why="weights are cut to a range after each step, and many stay at its end",
        build=lambda: dense(12, 32, 3),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(2e-2),
        steps=40,
        first=(),
        after=lambda net: [one.data.clamp_(-0.15, 0.15) for one in trainable(net)],
    ),
    Run(
        name="momentum_of_nine_tenths",
        kind="mlp",
        why="steps add up over time",
        build=lambda: dense(12, 24, 24, 3),
        data=smooth(),
        losses=(squares,),
        first=("fc0.weight",),
        optimizers=lambda net: (SGD(trainable(net), lr=0.05, momentum=0.9, nesterov=True),),
    ),
)

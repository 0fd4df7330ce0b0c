"""Healthy runs of deep dense networks, and of unusual steps."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR

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
    two_rates,
)
from tests.detection.run import Run
from tests.detection.runs.healthy_losses import FC0


class Scalars(nn.Module):
    """A block whose branch is multiplied with a number that starts at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)
        self.much = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.much * self.fc2(self.act(self.fc1(x)))


def rezero() -> nn.Module:
    """Twelve blocks that begin as nothing."""
    return chain(
        fc=nn.Linear(12, 24),
        blocks=nn.Sequential(*(Scalars(24) for _ in range(12))),
        out=nn.Linear(24, 3),
    )


def deep() -> nn.Module:
    """Forty layers whose weights keep the scale."""
    net = dense(12, *[32] * 40, 3, act=partial(nn.LeakyReLU, 0.6))
    return each(net, nn.Linear, lambda one: nn.init.orthogonal_(one.weight, 1.2))


def batch_normed() -> nn.Module:
    """Linear layers before a BatchNorm, which takes back the scale of their weights."""
    return chain(
        fc0=nn.Linear(12, 32, bias=False),
        norm0=nn.BatchNorm1d(32),
        act0=nn.Tanh(),
        fc1=nn.Linear(32, 32, bias=False),
        norm1=nn.BatchNorm1d(32),
        act1=nn.Tanh(),
        out=nn.Linear(32, 4),
    )


def normed_weights() -> nn.Module:
    """Layers whose weights are made of others."""
    return chain(
        fc0=weight_norm(nn.Linear(12, 24)),
        act0=nn.Tanh(),
        fc1=spectral_norm(nn.Linear(24, 24)),
        act1=nn.Tanh(),
        out=nn.Linear(24, 3),
    )


RUNS = (
    Run(
        name="rezero_twelve_blocks",
        kind="residual",
        why="branches get no gradient in the first step",
        build=rezero,
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        steps=30,
        first=("fc.weight",),
    ),
    Run(
        name="forty_layers",
        kind="mlp",
        why="deep, but every layer keeps the scale",
        build=deep,
        data=blobs(classes=3),
        losses=(entropy,),
        optimizers=adam(5e-4),
        steps=20,
        first=FC0,
    ),
    Run(
        name="twenty_selus",
        kind="mlp",
        why="deep and without a norm",
        build=lambda: each(
            dense(12, *[24] * 20, 3, act=nn.SELU),
            nn.Linear,
            lambda one: (
                nn.init.kaiming_normal_(one.weight, nonlinearity="linear"),
                one.bias.zero_(),
            ),
        ),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-3),
        first=FC0,
    ),
    Run(
        name="rate_of_five",
        kind="norm",
        why="a BatchNorm makes huge steps harmless",
        build=batch_normed,
        data=blobs(),
        losses=(entropy,),
        steps=30,
        first=FC0,
        optimizers=two_rates(torch.optim.SGD, 5.0, 0.1, "fc"),
    ),
    Run(
        name="normed_weights",
        kind="norm",
        why="the weights that move are not those that act",
        build=normed_weights,
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
    ),
    Run(
        name="warm_up_from_nothing",
        kind="mlp",
        why="the first rate is 0, the next ones tiny",
        build=lambda: dense(12, 24, 24, 3),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        schedule=lambda one: LambdaLR(one, lambda step: min(step / 15, 1.0) ** 3),
        steps=45,
        first=FC0,
    ),
    Run(
        name="cosine_to_nothing",
        kind="mlp",
        why="the last rates are tiny",
        build=lambda: dense(12, 24, 3),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(2e-2),
        schedule=lambda one: CosineAnnealingLR(one, 40),
        steps=40,
        first=FC0,
    ),
    Run(
        name="clipped_to_a_thousandth",
        kind="mlp",
        why="clipping leaves a thousandth, the rate undoes it",
        build=lambda: dense(12, 24, 24, 3),
        data=smooth(),
        losses=(squares,),
        optimizers=sgd(100.0),
        clip=1e-3,
        steps=40,
    ),
    Run(
        name="eight_batches_a_step",
        kind="mlp",
        why="gradients add up over eight backwards",
        build=lambda: dense(12, 24, 3, act=nn.GELU),
        data=smooth(),
        losses=(squares,),
        micro=8,
        batch=16,
        optimizers=adam(1e-2),
        first=FC0,
    ),
    Run(
        name="half_precision",
        kind="mlp",
        why="bfloat16 has three digits",
        build=lambda: dense(12, 48, 24, 3, act=nn.SiLU),
        data=smooth(),
        losses=(squares,),
        autocast=True,
        optimizers=adam(5e-3),
        steps=40,
        first=FC0,
    ),
)

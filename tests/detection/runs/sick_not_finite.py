"""Runs in which NaN or inf is born."""

from functools import partial

import torch
from torch import Generator, Tensor, nn

from tests.detection.parts import (
    Mean,
    adam,
    blobs,
    chain,
    convolve,
    dense,
    entropy,
    pictures,
    sgd,
    smooth,
    squares,
    with_,
    words,
)
from tests.detection.run import Label, Run
from tests.detection.runs.sick_growing import BAD


class Twins(nn.Module):
    """The distance of two embeddings, as the root of a sum of squares."""

    def __init__(self, slack: float) -> None:
        super().__init__()
        self.encode = dense(6, 16, 4)
        self.slack = slack

    def forward(self, x: Tensor) -> Tensor:
        apart = self.encode(x[:, :6]) - self.encode(x[:, 6:])
        return (apart.square().sum(1, keepdim=True) + self.slack).sqrt()


class Unit(nn.Module):
    """Scales features to length 1."""

    def __init__(self, slack: float) -> None:
        super().__init__()
        self.slack = slack

    def forward(self, x: Tensor) -> Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + self.slack)


class Exp(nn.Module):
    """The exponential."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.most = most

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(max=self.most).exp()


class Kernel(nn.Module):
    """One over the squared distance to learned points."""

    def __init__(self, slack: float) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.randn(8, 4))
        self.slack = slack

    def forward(self, x: Tensor) -> Tensor:
        return 1 / ((x[:, None] - self.points).square().sum(-1) + self.slack)


class Half(nn.Module):
    """Rounds to half precision, whose largest number is 65504."""

    def forward(self, x: Tensor) -> Tensor:
        return x.half().float()


class Attentive(nn.Module):
    """torch's attention, told which words are padding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.attend = nn.MultiheadAttention(16, 2, batch_first=True)
        self.out = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.embed(x)
        mixed, _ = self.attend(seen, seen, seen, key_padding_mask=x == 0)
        return self.out(mixed.mean(1))


def pairs(same: int | None, random: Generator) -> tuple[Tensor, Tensor]:
    """Pairs of inputs and their distance; one pair may be twice the same."""
    a, b = torch.randn(256, 6, generator=random), torch.randn(256, 6, generator=random)
    if same is not None:
        b[same] = a[same]
    return torch.cat([a, b], 1), (a - b).norm(dim=1, keepdim=True) / 3


def spoilt(sample: int, random: Generator) -> tuple[Tensor, Tensor]:
    """Pictures, one of which has a pixel that is not a number."""
    x, y = pictures()(random)
    x[sample, 0, 3, 3] = float("nan")
    return x, y


def emptied(sentence: int, random: Generator) -> tuple[Tensor, Tensor]:
    """Sentences, one of which is all padding."""
    x, y = words()(random)
    x[sentence] = 0
    return x, y


class Routed(nn.Module):
    """Four experts, and shares of them that are made without the usual care."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.router, self.exp = nn.Linear(12, 4), Exp(most)
        self.experts = nn.ModuleList(nn.Linear(12, 3) for _ in range(4))
        with torch.no_grad():
            self.router.bias[0] = 93.0 if most > 88 else 0.0

    def forward(self, x: Tensor) -> Tensor:
        raw = self.exp(self.router(x))
        share = raw / raw.sum(1, keepdim=True)
        return (share[:, :, None] * torch.stack([one(x) for one in self.experts], 1)).sum(1)


def at_a_point(slack: float) -> nn.Module:
    """A layer of kernels, one of whose points is at 1 in each dimension and is not learned."""
    net = chain(kernel=Kernel(slack), out=nn.Linear(8, 2))
    return with_(net, lambda one: one.kernel.points[0].fill_(1.0))


def on_a_point(_: int, random: Generator) -> tuple[Tensor, Tensor]:
    """Samples in four dimensions; one is exactly 1, 1, 1, 1."""
    x = torch.randn(256, 4, generator=random)
    x[5] = 1.0
    return x, torch.sin(x[:, :2])


def blind(slack: float, bias: float = -1.2) -> nn.Module:
    """Features of pictures that ReLU may leave nothing of, scaled to length 1."""
    return with_(
        chain(
            conv0=nn.Conv2d(2, 4, 3, padding=1),
            act0=nn.ReLU(),
            pool=Mean(2, 3),
            unit=Unit(slack),
            out=nn.Linear(4, 3),
        ),
        lambda net: net.conv0.bias.fill_(bias),
    )


def certain(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A cross-entropy made by hand, which can take the log of 0."""
    return -net(x).gather(1, y[:, None]).log().mean()


RUNS = (
    Run(
        name="same_pair_twice",
        kind="siamese",
        why="the slope of a root is infinite at 0, and 0 times inf is NaN",
        build=lambda: Twins(0.0),
        data=partial(pairs, 5 * 32 + 3),
        losses=(squares,),
        optimizers=adam(1e-2),
        batch=32,
        steps=8,
        labels=(Label(unit="net/encode", flag="NAN", also=("net/encode.out",), step=5),),
        allowed=BAD,
        cure={"build": lambda: Twins(1e-6), "steps": 30},
        idle=("encode.out.bias",),
    ),
    Run(
        name="nothing_scaled_to_one",
        kind="cnn",
        why="features that are all 0 for a picture are divided by 0",
        build=lambda: blind(0.0),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        batch=32,
        steps=6,
        labels=(Label(unit="net/unit", flag="NAN", step=0),),
        allowed=(*BAD, ("*", "DEAD_CHANNELS"), ("*", "DEAD")),
        cure={"build": lambda: blind(1e-3, 0.3), "optimizers": adam(1e-2), "steps": 30},
    ),
    Run(
        name="pixel_that_is_no_number",
        kind="cnn",
        why="one pixel of the data is NaN in the fourth step",
        build=lambda: convolve(2, 8, 8, act=nn.LeakyReLU),
        data=partial(spoilt, 70),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=16,
        steps=9,
        labels=(Label(unit="net/conv0", flag="NAN", also=("net",), step=4),),
        allowed=BAD,
        cure={"data": pictures(), "steps": 30},
        first=("conv0.weight",),
    ),
    Run(
        name="sentence_of_padding",
        kind="transformer",
        why="a softmax over nothing but masked scores",
        build=Attentive,
        data=partial(emptied, 40),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=16,
        steps=8,
        labels=(Label(unit="net/attend", flag="NAN", step=2),),
        allowed=BAD,
        cure={"data": words(), "steps": 30},
    ),
    Run(
        name="log_of_nothing",
        kind="mlp",
        why="a softmax that is exactly 0 goes into a log",
        build=lambda: with_(
            chain(
                fc0=nn.Linear(12, 16), act0=nn.Tanh(), out=nn.Linear(16, 4), share=nn.Softmax(-1)
            ),
            lambda net: net.out.weight.mul_(400),
        ),
        data=blobs(),
        losses=(certain,),
        optimizers=adam(1e-3),
        steps=5,
        first=("fc0.weight",),
        labels=(Label(unit="net/out", flag="NAN", also=("net/act0", "net/fc0"), step=0),),
        allowed=(*BAD, ("net/share", "SATURATED")),
        cure={
            "build": lambda: chain(
                fc0=nn.Linear(12, 16), act0=nn.Tanh(), out=nn.Linear(16, 4), share=nn.Softmax(-1)
            ),
            "optimizers": adam(1e-2),
            "steps": 30,
        },
    ),
    Run(
        name="exponent_too_large",
        kind="moe",
        why="a router that makes its shares by hand: exp of 90 and more",
        build=lambda: Routed(1e9),
        data=smooth(),
        losses=(squares,),
        optimizers=sgd(1e-3),
        steps=5,
        first=(),
        labels=(Label(unit="net/exp", flag="INF", step=0),),
        allowed=BAD,
        cure={"build": lambda: Routed(3.0), "optimizers": adam(2e-2), "steps": 40},
    ),
    Run(
        name="distance_of_nothing",
        kind="kernel",
        why="a sample lies on a learned point, and one is divided by 0",
        build=lambda: at_a_point(0.0),
        data=partial(on_a_point, 0),
        losses=(squares,),
        optimizers=sgd(1e-6),
        batch=32,
        steps=6,
        labels=(Label(unit="net/kernel", flag="INF", step=0),),
        allowed=BAD,
        scales=False,
        cure={"build": lambda: at_a_point(0.5), "optimizers": adam(2e-2), "steps": 40},
    ),
    Run(
        name="half_overflows",
        kind="mixed precision",
        why="values of 1e5 and more in half precision",
        build=lambda: chain(
            fc0=with_(nn.Linear(12, 24), lambda one: one.weight.mul_(3e5)),
            low=Half(),
            act0=nn.Tanh(),
            out=nn.Linear(24, 3),
        ),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        steps=6,
        first=("fc0.weight",),
        labels=(Label(unit="net/low", flag="INF", step=0),),
        allowed=(*BAD, ("net/act0", "SATURATED"), ("*", "IGNORED_CHANNELS")),
        cure={
            "build": lambda: chain(
                fc0=nn.Linear(12, 24), low=Half(), act0=nn.Tanh(), out=nn.Linear(24, 3)
            ),
            "steps": 30,
        },
    ),
)

"""Runs in which the gradient fades or grows over depth, or a fault puts NaN or inf into it."""

from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from tests.detection.parts import (
    Mean, Reader, adam, blobs, chain, convolve, dense, each, entropy, pictures, sgd, smooth, sines,
    squares, times, waves, with_, words,
)  # fmt: skip
from tests.detection.run import Label, Run


class Begun(nn.Module):
    """A recurrent network whose first state is made from the first input, and which tells the end."""

    def __init__(self, gain: float, act: str = "tanh") -> None:
        super().__init__()
        self.begin = nn.Linear(4, 24)
        self.rnn = nn.RNN(4, 24, batch_first=True, nonlinearity=act)
        self.out = nn.Linear(24, 3)
        with torch.no_grad():
            nn.init.orthogonal_(self.rnn.weight_hh_l0, gain)
            self.rnn.weight_ih_l0.mul_(0.3)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.tanh(self.begin(x[:, 0]))[None]
        return self.out(self.rnn(x, state)[0][:, -1])


class Gates(nn.Module):
    """Layers behind one another, each let through by a gate."""

    def __init__(self, openness: float, depth: int = 8) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(depth))
        self.gates = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), nn.Sigmoid()) for _ in range(depth)
        )
        self.fc, self.out = nn.Linear(12, 16), nn.Linear(16, 3)
        with torch.no_grad():
            for layer, gate in zip(self.layers, self.gates, strict=True):
                nn.init.orthogonal_(layer.weight)
                gate[0].bias.fill_(openness)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        for layer, gate in zip(self.layers, self.gates, strict=True):
            x = layer(x) * gate(x)
        return self.out(x)


class Bare(nn.Module):
    """Attention and feed-forward layers without residual ways or norms."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(5))
        )
        self.out = nn.Linear(16, 2)
        with torch.no_grad():
            for one in self.layers.modules():
                if isinstance(one, nn.Linear):
                    nn.init.normal_(one.weight, std=size / one.in_features**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layers(self.embed(x)).mean(1))


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


class Waist(nn.Module):
    """An autoencoder whose code is scaled on its way, and a direct way around it."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.encode, self.around = dense(12, 16, 3), nn.Linear(12, 2)
        self.decode = dense(5, 24, 12)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(torch.cat([self.factor * self.encode(x), self.around(x)], 1))


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


def rare(random: Generator, size: float = 6.0) -> tuple[Tensor, Tensor]:
    """Counts, and one input of the thirteenth batch that is far from all others."""
    x = torch.randn(32 * 24, 8, generator=random) * 0.5
    x[12 * 32] = size
    return x, torch.poisson(
        torch.exp(1.5 + x[:, :2].clamp(max=1).sum(1, keepdim=True)), generator=random
    )


def blind(slack: float, bias: float = -1.2) -> nn.Module:
    """Features of pictures that ReLU may leave nothing of, scaled to length 1."""
    return with_(chain(conv0=nn.Conv2d(2, 4, 3, padding=1), act0=nn.ReLU(), pool=Mean(2, 3), unit=Unit(slack), out=nn.Linear(4, 3)),
                 lambda net: net.conv0.bias.fill_(bias))  # fmt: skip


def certain(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A cross-entropy made by hand, which can take the log of 0."""
    return -net(x).gather(1, y[:, None]).log().mean()


def counts(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A Poisson likelihood of counts."""
    return F.poisson_nll_loss(net(x), y)


def small(net: nn.Module, size: float) -> nn.Module:
    """Convolutions with weights of one size over what keeps the scale."""
    return each(net, nn.Conv2d, lambda one: one.weight.normal_(
        0, size / (9 * one.in_channels) ** 0.5))  # fmt: skip


def sized(net: nn.Module, size: float) -> nn.Module:
    """Linear layers with weights of one size over what keeps the scale."""
    return each(net, nn.Linear, lambda one: one.weight.normal_(0, size / one.in_features**0.5))


FADE = (
    ("*", "VANISHING"),
    ("*", "LR_LOW"),
    ("*", "IGNORED_CHANNELS"),
    ("*", "FROZEN"),
    ("*", "COLLAPSE"),
)
GROW = (("*", "EXPLODING"), ("*", "LR_LOW"), ("*", "FROZEN"))
BAD = tuple(
    ("*", flag) for flag in ("NAN", "INF", "FROZEN", "EXPLODING", "VANISHING", "LR_HIGH", "LR_LOW")
)

RUNS = (
    Run(name="ten_sigmoids", kind="mlp", why="each sigmoid leaves a quarter of the gradient, at most",
        build=lambda: dense(12, *[24] * 10, 3, act=nn.Sigmoid), data=smooth(), losses=(squares,), optimizers=sgd(0.05),
        labels=(Label(unit="net/fc0", flag="VANISHING", also=("net/act0", "net/fc1")),), allowed=FADE,
        cure={"build": lambda: dense(12, *[24] * 2, 3, act=nn.Tanh)}, first=("fc0.weight",)),
    Run(name="state_that_fades", kind="rnn", why="the first state shrinks forty times",
        build=lambda: Begun(0.5), data=waves(40), losses=(entropy,), optimizers=adam(3e-3), batch=32, steps=20,
        labels=(Label(unit="net/begin", flag="VANISHING"),), allowed=FADE, cure={"build": lambda: Begun(1.0), "data": waves(6)},),
    Run(name="small_convolutions", kind="cnn", why="seven convolutions of a fifth of the size that keeps the scale",
        build=lambda: small(convolve(2, *[8] * 7, norm=False, act=partial(nn.LeakyReLU, 0.3)), 0.2), data=pictures(),
        losses=(entropy,), optimizers=sgd(0.1), batch=32, steps=20, first=("conv0.weight",),
        labels=(Label(unit="net/conv0", flag="VANISHING", also=("net/act0", "net/conv1")),), allowed=FADE,
        cure={"build": lambda: small(convolve(2, *[8] * 7, norm=False, act=partial(nn.LeakyReLU, 0.3)), 1.2), "optimizers": adam(2e-3), "steps": 40}),
    Run(name="bare_small_layers", kind="transformer", why="neither residual ways nor norms carry small layers",
        build=lambda: Bare(0.3), data=words(), losses=(entropy,), optimizers=adam(1e-4), batch=32, steps=20,
        labels=(Label(unit="net/layers.0", flag="VANISHING", also=("net/embed", "net/layers.1", "net/layers.0.0", "net/layers.0.2")),),
        allowed=FADE, cure={"build": lambda: Bare(1.2), "optimizers": adam(5e-3)}),
    Run(name="eight_gates_shut", kind="gated", why="eight gates of one twentieth, one behind the other",
        build=lambda: Gates(-3.0), data=smooth(), losses=(squares,), optimizers=sgd(0.05), steps=20,
        labels=(Label(unit="net/fc", flag="VANISHING", also=("net/layers.0",)),), allowed=(*FADE, ("net/gates*", "SATURATED")),
        cure={"build": lambda: Gates(3.0), "optimizers": adam(1e-2), "steps": 30}, first=("fc.weight",)),
    Run(name="waist_in_another_unit", kind="autoencoder", why="the code goes on divided by a hundred thousand",
        build=lambda: Waist(1e-5), data=sines(), losses=(squares,), optimizers=sgd(0.1), steps=30,
        labels=(Label(unit="net/encode", flag="VANISHING", also=("net/encode.fc0", "net/encode.out"), names=("IGNORED_CHANNELS",)),),
        allowed=(*FADE,), cure={"build": lambda: Waist(1.0), "optimizers": adam(1e-2)}, first=("encode.fc0.weight", "around.weight")),
    Run(name="layers_five_times_too_large", kind="mlp", why="nine layers, each five times too large", scales=True,
        build=lambda: sized(dense(12, *[24] * 9, 3, act=partial(nn.LeakyReLU, 0.5)), 5.0), data=smooth(), losses=(squares,),
        optimizers=sgd(1e-22), steps=15, first=("fc0.weight",),
        labels=(Label(unit="net/fc0", flag="EXPLODING", also=("net/act0", "net/fc1")),), allowed=GROW,
        cure={"build": lambda: sized(dense(12, *[24] * 9, 3, act=partial(nn.LeakyReLU, 0.5)), 1.2), "optimizers": adam(3e-3), "steps": 30}),
    Run(name="state_that_grows", kind="rnn", why="the first state is turned and stretched thirty times; the loss in millionths",
        build=lambda: Begun(2.1, "relu"), data=waves(40), losses=(times(entropy, 1e-6),), optimizers=sgd(1e-6), batch=32, steps=12,
        labels=(Label(unit="net/begin", flag="EXPLODING", also=("net/rnn",)),), allowed=GROW,
        cure={"build": lambda: Begun(1.0), "losses": (entropy,), "data": waves(8), "optimizers": adam(1e-2), "steps": 30}),
    Run(name="large_convolutions", kind="cnn", why="six convolutions without norms, each far too large",
        build=lambda: small(convolve(2, *[8] * 6, norm=False, act=nn.LeakyReLU), 20.0), data=pictures(),
        losses=(entropy,), optimizers=sgd(1e-20), batch=32, steps=12, first=("conv0.weight",),
        labels=(Label(unit="net/conv0", flag="EXPLODING", also=("net/act0", "net/conv1")),), allowed=GROW,
        cure={"build": lambda: small(convolve(2, *[8] * 6, norm=False, act=nn.LeakyReLU), 1.4), "optimizers": adam(1e-2), "steps": 40}),
    Run(name="rate_that_diverges", kind="autoencoder", why="each step overshoots further, until nothing is a number",
        build=lambda: dense(12, 12, 12, act=nn.Identity), data=sines(), losses=(times(squares, 12.0),), optimizers=sgd(1.0), steps=25,
        labels=(Label(unit="net", flag="LR_HIGH", also=("net/fc0", "net/out")), Label(unit="net", flag="EXPLODING", also=("net/fc0", "net/out"))),
        allowed=(*BAD, ("*", "COLLAPSE")), cure={"optimizers": sgd(0.02)}, first=("fc0.weight",)),
    Run(name="same_pair_twice", kind="siamese", why="the slope of a root is infinite at 0, and 0 times inf is NaN",
        build=lambda: Twins(0.0), data=partial(pairs, 5 * 32 + 3), losses=(squares,), optimizers=adam(1e-2), batch=32, steps=8,
        labels=(Label(unit="net/encode", flag="NAN", also=("net/encode.out",), step=5),), allowed=BAD,
        cure={"build": lambda: Twins(1e-6), "steps": 30}, idle=("encode.out.bias",)),
    Run(name="nothing_scaled_to_one", kind="cnn", why="features that are all 0 for a picture are divided by 0",
        build=lambda: blind(0.0), data=pictures(), losses=(entropy,), optimizers=adam(1e-3), batch=32, steps=6,
        labels=(Label(unit="net/unit", flag="NAN", step=0),), allowed=(*BAD, ("*", "DEAD_CHANNELS"), ("*", "DEAD")), cure={"build": lambda: blind(1e-3, 0.3), "optimizers": adam(1e-2), "steps": 30}),
    Run(name="pixel_that_is_no_number", kind="cnn", why="one pixel of the data is NaN in the fourth step",
        build=lambda: convolve(2, 8, 8, act=nn.LeakyReLU), data=partial(spoilt, 70), losses=(entropy,), optimizers=adam(1e-2), batch=16, steps=9,
        labels=(Label(unit="net/conv0", flag="NAN", also=("net",), step=4),), allowed=BAD,
        cure={"data": pictures(), "steps": 30}, first=("conv0.weight",)),
    Run(name="sentence_of_padding", kind="transformer", why="a softmax over nothing but masked scores",
        build=Attentive, data=partial(emptied, 40), losses=(entropy,), optimizers=adam(1e-2), batch=16, steps=8,
        labels=(Label(unit="net/attend", flag="NAN", step=2),), allowed=BAD, cure={"data": words(), "steps": 30}),
    Run(name="log_of_nothing", kind="mlp", why="a softmax that is exactly 0 goes into a log",
        build=lambda: with_(chain(fc0=nn.Linear(12, 16), act0=nn.Tanh(), out=nn.Linear(16, 4), share=nn.Softmax(-1)),
                            lambda net: net.out.weight.mul_(400)),
        data=blobs(), losses=(certain,), optimizers=adam(1e-3), steps=5, first=("fc0.weight",),
        labels=(Label(unit="net/out", flag="NAN", also=("net/act0", "net/fc0"), step=0),), allowed=(*BAD, ("net/share", "SATURATED")),
        cure={"build": lambda: chain(fc0=nn.Linear(12, 16), act0=nn.Tanh(), out=nn.Linear(16, 4), share=nn.Softmax(-1)), "optimizers": adam(1e-2), "steps": 30}),
    Run(name="exponent_too_large", kind="moe", why="a router that makes its shares by hand: exp of 90 and more",
        build=lambda: Routed(1e9), data=smooth(), losses=(squares,), optimizers=sgd(1e-3), steps=5, first=(),
        labels=(Label(unit="net/exp", flag="INF", step=0),), allowed=BAD, cure={"build": lambda: Routed(3.0), "optimizers": adam(2e-2), "steps": 40}),
    Run(name="distance_of_nothing", kind="kernel", why="a sample lies on a learned point, and one is divided by 0",
        build=lambda: at_a_point(0.0), data=partial(on_a_point, 0), losses=(squares,), optimizers=sgd(1e-6), batch=32, steps=6,
        labels=(Label(unit="net/kernel", flag="INF", step=0),), allowed=BAD, scales=False,
        cure={"build": lambda: at_a_point(0.5), "optimizers": adam(2e-2), "steps": 40}),
    Run(name="half_overflows", kind="mixed precision", why="values of 1e5 and more in half precision",
        build=lambda: chain(fc0=with_(nn.Linear(12, 24), lambda one: one.weight.mul_(3e5)), low=Half(), act0=nn.Tanh(), out=nn.Linear(24, 3)),
        data=smooth(), losses=(squares,), optimizers=adam(1e-2), steps=6, first=("fc0.weight",),
        labels=(Label(unit="net/low", flag="INF", step=0),), allowed=(*BAD, ("net/act0", "SATURATED"), ("*", "IGNORED_CHANNELS")),
        cure={"build": lambda: chain(fc0=nn.Linear(12, 24), low=Half(), act0=nn.Tanh(), out=nn.Linear(24, 3)), "steps": 30}),
    Run(name="rates_in_an_exponent", kind="mlp", why="one rare large input makes a gradient ten thousand times the usual",
        build=lambda: with_(dense(8, 16, 1, act=nn.LeakyReLU), lambda net: (net.fc0.weight.abs_(), net.out.weight.abs_())), data=rare,
        losses=(counts,), optimizers=sgd(1e-3), batch=32, steps=24,
        labels=(Label(unit="net", flag="EXPLODING", step=12),), allowed=BAD + (("*", "SATURATED"),), cure={"data": partial(rare, size=1.0), "optimizers": adam(2e-2), "steps": 48}, scales=False),
)  # fmt: skip

"""Runs in which channels are dead, flat, ignored, or say the same as others."""

from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from tests.detection.parts import (
    Mean, Reader, adam, blobs, chain, convolve, dense, entropy, pictures, sgd, sines, smooth,
    squares, times, waves, with_, words,
)  # fmt: skip
from tests.detection.run import Label, Run


relus = partial(dense, act=nn.ReLU)


class Cut(nn.Module):
    """Hands on the first channels only, and hardly anything of the others."""

    def __init__(self, keep: int, rest: float = 0.0) -> None:
        super().__init__()
        self.keep, self.rest = keep, rest

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.full((x.shape[-1],), self.rest)
        mask[: self.keep] = 1.0
        return x * mask


class Tail(nn.Module):
    """A recurrent network of which the last layer reads some of the state."""

    def __init__(self, read: int) -> None:
        super().__init__()
        self.read = read
        self.rnn = nn.GRU(4, 16, batch_first=True)
        self.feel = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        self.out = nn.Linear(read, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.feel(self.rnn(x)[0][:, -1])[:, : self.read])


class Cropped(nn.Module):
    """A convolutional network that reads some of its channels."""

    def __init__(self, read: int) -> None:
        super().__init__()
        self.read = read
        self.see = nn.Sequential(nn.Conv2d(2, 10, 3, padding=1), nn.Tanh())
        self.more = nn.Sequential(nn.Conv2d(read, 10, 3, padding=1), nn.Tanh())
        self.pool, self.out = Mean(2, 3), nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.pool(self.more(self.see(x)[:, : self.read])))


class Views(nn.Module):
    """Two encoders side by side, and a head that sees both."""

    def __init__(self, *, same: bool) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(8, 12), nn.Tanh())
        self.right = nn.Sequential(nn.Linear(8, 12), nn.Tanh())
        self.both, self.out = nn.Identity(), nn.Linear(24, 3)
        if same:
            self.right.load_state_dict(self.left.state_dict())

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.cat([self.left(x[..., :8]), self.right(x[..., 8:])], -1)
        seen = self.both(seen)
        return self.out(seen if seen.dim() == 2 else seen.mean(1))


class Chooser(nn.Module):
    """Experts weighed by a softmax of scores that may be far too large."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.score, self.share = nn.Linear(12, 4), nn.Softmax(-1)
        self.experts = nn.ModuleList(nn.Linear(12, 3) for _ in range(4))
        with torch.no_grad():
            self.score.weight.mul_(factor)

    def forward(self, x: Tensor) -> Tensor:
        answers = torch.stack([one(x) for one in self.experts], 1)
        return (self.share(self.score(x))[:, :, None] * answers).sum(1)


class Gated(nn.Module):
    """A residual block with a gate, which may be far too sure of itself."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.fc, self.change = nn.Linear(12, 16), nn.Linear(16, 16)
        self.gate = nn.Sequential(nn.Linear(16, 16), nn.Sigmoid())
        self.out = nn.Linear(16, 3)
        with torch.no_grad():
            self.gate[0].weight.mul_(factor)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        return self.out(x + self.gate(x) * self.change(x))


def two_views(same: float, random: Generator) -> tuple[Tensor, Tensor]:
    """Two recordings, which have so much in common."""
    a, b = torch.randn(256, 8, generator=random), torch.randn(256, 8, generator=random)
    b = same * a + (1 - same**2) ** 0.5 * b
    x = torch.cat([a, b], 1)
    return x, torch.sin(x @ torch.randn(16, 3, generator=random) * 0.4)


def two_series(same: float, random: Generator) -> tuple[Tensor, Tensor]:
    """Series of two recordings."""
    a, b = (torch.randn(96, 6, 8, generator=random) for _ in range(2))
    b = same * a + (1 - same**2) ** 0.5 * b
    x = torch.cat([a, b], 2)
    return x, torch.sin(x.mean(1) @ torch.randn(16, 3, generator=random))


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
    return chain(fc0=nn.Linear(12, 24), act0=nn.Tanh(), fc1=with_(nn.Linear(24, 10), lambda one: one.bias.fill_(0.5)), act1=nn.ReLU(),
                 fc2=nn.Linear(10, 24), act2=nn.Tanh(), out=nn.Linear(24, 12))  # fmt: skip


def normed() -> nn.Module:
    """A norm between a layer and its activation."""
    return chain(
        fc0=nn.Linear(12, 24, bias=False),
        norm0=nn.BatchNorm1d(24),
        act0=nn.ReLU(),
        out=nn.Linear(24, 4),
    )


def unscaled(random: Generator) -> tuple[Tensor, Tensor]:
    """Inputs of size fifty."""
    x, y = smooth()(random)
    return 50 * x, y


def far_below(random: Generator) -> tuple[Tensor, Tensor]:
    """Targets that are all far below 0."""
    x = 0.3 * torch.randn(256, 8, generator=random)
    return x, -6 + 0.2 * torch.randn(256, 1, generator=random)


def spike(optimizer: Optimizer) -> LambdaLR:
    """A rate that is too large in one step."""
    return LambdaLR(optimizer, lambda step: 4_000.0 if step == 6 else 1.0)


def cold_reader() -> nn.Module:
    """A transformer whose first attention looks at one word alone."""
    net = Reader(1)
    net.layers[0].attend.cold = 1e-3
    return net


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
GROUPS = {"net/both": {"left": tuple(range(12)), "right": tuple(range(12, 24))}}
RUNS = (
    Run(name="convolution_switched_off", kind="cnn", why="biases of -14 after an update gone wrong",
        build=lambda: kill(convolve(2, 8, 8, norm=False), lambda net: net.conv1, ALL), data=pictures(), losses=(entropy,),
        optimizers=adam(1e-3), batch=32, steps=20, labels=(Label(unit="net/act1", flag="DEAD"),), allowed=(*SIDE, ("*", "LR_HIGH")),
        cure={"build": lambda: convolve(2, 8, 8, norm=False, act=nn.LeakyReLU), "optimizers": adam(1e-2), "steps": 40}, first=("conv0.weight",)),
    Run(name="feed_forward_switched_off", kind="transformer", why="none of a layer's inner units fires; the residual way hides it",
        build=lambda: kill(Reader(act=nn.ReLU), lambda net: net.layers[1].up, ALL), data=words(), losses=(entropy,),
        optimizers=adam(3e-3), batch=32, steps=20, labels=(Label(unit="net/layers.1.act", flag="DEAD"),), allowed=SIDE,
        cure={"build": lambda: Reader()}),
    Run(name="expert_switched_off", kind="moe", why="one of four experts answers with its last bias alone",
        build=lambda: kill(firing(Mixed()), lambda net: net.experts[2].fc0, ALL), data=smooth(), losses=(squares,),
        optimizers=adam(1e-2), labels=(Label(unit="net/experts.2.act0", flag="DEAD"),), allowed=SIDE,
        cure={"build": lambda: firing(Mixed())}),
    Run(name="five_of_twelve_channels", kind="cnn", why="five channels of a convolution never fire",
        build=lambda: kill(firing(convolve(2, 12, 8, norm=False)), lambda net: net.conv0, slice(3, 8)), data=pictures(), losses=(entropy,),
        optimizers=adam(1e-3), batch=32, steps=20, labels=(Label(unit="net/act0", flag="DEAD_CHANNELS", count=5),),
        allowed=(("net/conv0", "IGNORED_CHANNELS"),), first=("conv0.weight",), cure={"build": lambda: firing(convolve(2, 12, 8, norm=False)), "optimizers": adam(3e-3), "steps": 40}),
    Run(name="nine_inner_units", kind="transformer", why="nine of forty-eight inner units of GELU are off for good",
        build=lambda: kill(Reader(), lambda net: net.layers[0].up, slice(20, 29)), data=words(), losses=(entropy,),
        optimizers=adam(3e-3), batch=32, steps=20, labels=(Label(unit="net/layers.0.act", flag="DEAD_CHANNELS", count=9),),
        allowed=(("net/layers.0.up", "IGNORED_CHANNELS"),), cure={"build": lambda: Reader()}),
    Run(name="code_with_dead_units", kind="autoencoder", why="three of ten units of a code never fire",
        build=lambda: kill(coder(), lambda net: net.fc1, slice(0, 3)), data=sines(), losses=(squares,), optimizers=adam(2e-3), steps=40,
        labels=(Label(unit="net/act1", flag="DEAD_CHANNELS", count=3),), allowed=(("net/fc1", "IGNORED_CHANNELS"),),
        cure={"build": lambda: coder()}, first=("fc0.weight",)),
    Run(name="norm_that_shifts_down", kind="norm", why="a BatchNorm's shift keeps four channels below 0",
        build=lambda: kill(normed(), lambda net: net.norm0, slice(10, 14), -9.0), data=blobs(), losses=(entropy,), optimizers=adam(1e-2),
        labels=(Label(unit="net/act0", flag="DEAD_CHANNELS", count=4),), allowed=(("net/norm0", "IGNORED_CHANNELS"), ("net/fc0", "IGNORED_CHANNELS")),
        cure={"build": lambda: normed()}, first=("fc0.weight",)),
    Run(name="killed_by_one_step", kind="mlp", why="one step at a rate of a thousand times the usual",
        build=lambda: with_(relus(8, 24, 1), lambda net: net.out.weight.abs_().add_(0.1)), data=far_below, losses=(squares,), batch=256,
        optimizers=lambda net: (torch.optim.SGD(net.parameters(), lr=1e-3),), schedule=spike, steps=24,
        labels=(Label(unit="net/act0", flag="DEAD"),), allowed=(*SIDE, ("*", "LR_HIGH"), ("*", "EXPLODING"), ("*", "DEAD_CHANNELS")),
        cure={"schedule": None, "optimizers": sgd(0.02), "build": lambda: dense(8, 24, 1, act=nn.LeakyReLU)}, first=("fc0.weight",)),
    Run(name="code_cut_short", kind="autoencoder", why="the decoder reads 7 of 12 numbers, and a trillionth of the others",
        build=lambda: chain(encode=nn.Sequential(nn.Linear(12, 12), nn.Tanh()), cut=Cut(7, 1e-12), out=nn.Linear(12, 12)), data=sines(), losses=(times(squares, 1e5),),
        optimizers=adam(1e-2), labels=(Label(unit="net/encode", flag="IGNORED_CHANNELS", count=5, also=("net/encode.1",)),),
        allowed=(("net/encode.0", "IGNORED_CHANNELS"),), cure={"build": lambda: chain(encode=nn.Sequential(nn.Linear(12, 12), nn.Tanh()), cut=Cut(12), out=nn.Linear(12, 12))},
        first=("encode.0.weight",)),
    Run(name="state_half_read", kind="rnn", why="the last layer reads 9 of 16 numbers",
        build=lambda: Tail(9), data=waves(), losses=(entropy,), optimizers=adam(1e-2), batch=32,
        labels=(Label(unit="net/feel", flag="IGNORED_CHANNELS", count=7, also=("net/feel.1",)),), allowed=(("net/feel.0", "IGNORED_CHANNELS"),),
        cure={"build": lambda: Tail(16)}, first=("rnn.weight_ih_l0",)),
    Run(name="channels_left_behind", kind="cnn", why="the next convolution was built for six of ten channels",
        build=lambda: Cropped(6), data=pictures(), losses=(entropy,), optimizers=adam(1e-2), batch=32,
        labels=(Label(unit="net/see", flag="IGNORED_CHANNELS", count=4, also=("net/see.1",)),), allowed=(("net/see.0", "IGNORED_CHANNELS"),),
        cure={"build": lambda: Cropped(10)}, first=("see.0.weight",)),
    Run(name="tanh_of_fifty", kind="mlp", why="inputs that nobody has scaled go into a tanh",
        build=lambda: dense(12, 24, 24, 3), data=unscaled, losses=(squares,), optimizers=adam(1e-3),
        labels=(Label(unit="net/act0", flag="SATURATED", also=("net/fc0",)),), allowed=(("*", "VANISHING"), ("*", "IGNORED_CHANNELS"), ("*", "LR_LOW")),
        cure={"data": smooth(), "optimizers": adam(1e-2)}, first=("fc0.weight",)),
    Run(name="clipped_activations", kind="cnn", why="a Hardtanh of values of 20",
        build=lambda: with_(convolve(2, 8, 8, norm=False, act=nn.Hardtanh), lambda net: net.conv0.weight.mul_(60)), data=pictures(), losses=(entropy,),
        optimizers=adam(1e-3), batch=32, steps=20, labels=(Label(unit="net/act0", flag="SATURATED", also=("net/conv0",)),),
        allowed=(("*", "VANISHING"), ("*", "IGNORED_CHANNELS"), ("*", "LR_LOW")), cure={"build": lambda: convolve(2, 8, 8, norm=False, act=nn.Hardtanh), "optimizers": adam(5e-3), "steps": 40}, first=("conv0.weight",)),
    Run(name="attention_too_cold", kind="transformer", why="scores are a thousand times too large, each row looks at one word",
        build=cold_reader, data=words(), losses=(entropy,), optimizers=adam(1e-3), batch=32, steps=20,
        labels=(Label(unit="net/layers.0.attend.weigh", flag="SATURATED"),), allowed=(("*", "VANISHING"), ("*", "EXPLODING"), ("*", "IGNORED_CHANNELS")),
        cure={"build": lambda: Reader(1), "optimizers": adam(5e-3)}),
    Run(name="router_too_sure", kind="moe", why="scores of hundreds send each sample to one expert",
        build=lambda: Chooser(300.0), data=smooth(), losses=(squares,), optimizers=adam(1e-3), first=(),
        labels=(Label(unit="net/share", flag="SATURATED", also=("net/score",)),), allowed=(("*", "VANISHING"), ("*", "IGNORED_CHANNELS"), ("net/score", "LR_LOW")),
        cure={"build": lambda: Chooser(1.0), "optimizers": adam(2e-2)}),
    Run(name="gate_too_sure", kind="gated", why="gates of 0 or 1 and nothing between",
        build=lambda: Gated(200.0), data=smooth(), losses=(squares,), optimizers=adam(1e-3), first=("fc.weight",),
        labels=(Label(unit="net/gate.1", flag="SATURATED", also=("net/gate", "net/gate.0")),), allowed=(("*", "VANISHING"), ("*", "IGNORED_CHANNELS"), ("*", "LR_LOW"), ("*", "EXPLODING")),
        cure={"build": lambda: Gated(1.0), "optimizers": adam(1e-2)}),
    Run(name="same_eyes_twice", kind="fusion", why="two encoders began as copies and see nearly the same",
        build=lambda: Views(same=True), data=partial(two_views, 0.995), losses=(squares,), optimizers=adam(1e-3), steps=16, groups=GROUPS,
        labels=(Label(unit="net/both", flag="LEAKAGE"),), allowed=(("net", "LEAKAGE"),),
        cure={"build": lambda: Views(same=False), "data": partial(two_views, 0.2), "optimizers": adam(1e-2), "steps": 30}, first=()),
    Run(name="same_series_twice", kind="fusion", why="the same in (batch, time, channel)",
        build=lambda: Views(same=True), data=partial(two_series, 1.0), losses=(squares,), optimizers=adam(1e-3), batch=32, steps=16, groups=GROUPS,
        labels=(Label(unit="net/both", flag="LEAKAGE"),), allowed=(("net", "LEAKAGE"),),
        cure={"build": lambda: Views(same=False), "data": partial(two_series, 0.2), "optimizers": adam(2e-2), "steps": 40}, first=()),
)  # fmt: skip

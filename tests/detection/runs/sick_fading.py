"""Runs in which the gradient fades over depth."""

from functools import partial

import torch
from torch import Tensor, nn

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
    waves,
    words,
)
from tests.detection.run import Label, Run


class Begun(nn.Module):
    """A recurrent network whose first state is made of the first input."""

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


class Waist(nn.Module):
    """An autoencoder whose code is scaled on its way, and a direct way around it."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.encode, self.around = dense(12, 16, 3), nn.Linear(12, 2)
        self.decode = dense(5, 24, 12)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(torch.cat([self.factor * self.encode(x), self.around(x)], 1))


def small(net: nn.Module, size: float) -> nn.Module:
    """Convolutions with weights of one size over what keeps the scale."""
    return each(
        net, nn.Conv2d, lambda one: one.weight.normal_(0, size / (9 * one.in_channels) ** 0.5)
    )


FADE = (
    ("*", "VANISHING"),
    ("*", "LR_LOW"),
    ("*", "IGNORED_CHANNELS"),
    ("*", "FROZEN"),
    ("*", "COLLAPSE"),
)


RUNS = (
    Run(
        name="ten_sigmoids",
        kind="mlp",
        why="each sigmoid leaves a quarter of the gradient, at most",
        build=lambda: dense(12, *[24] * 10, 3, act=nn.Sigmoid),
        data=smooth(),
        losses=(squares,),
        optimizers=sgd(0.05),
        labels=(Label(unit="net/fc0", flag="VANISHING", also=("net/act0", "net/fc1")),),
        allowed=FADE,
        cure={"build": lambda: dense(12, *[24] * 2, 3, act=nn.Tanh)},
        first=("fc0.weight",),
    ),
    Run(
        name="state_that_fades",
        kind="rnn",
        why="the first state shrinks forty times",
        build=lambda: Begun(0.5),
        data=waves(40),
        losses=(entropy,),
        optimizers=adam(3e-3),
        batch=32,
        steps=20,
        labels=(Label(unit="net/begin", flag="VANISHING"),),
        allowed=FADE,
        cure={"build": lambda: Begun(1.0), "data": waves(6)},
    ),
    Run(
        name="small_convolutions",
        kind="cnn",
        why="seven convolutions of a fifth of the size that keeps the scale",
        build=lambda: small(convolve(2, *[8] * 7, norm=False, act=partial(nn.LeakyReLU, 0.3)), 0.2),
        data=pictures(),
        losses=(entropy,),
        optimizers=sgd(0.1),
        batch=32,
        steps=20,
        first=("conv0.weight",),
        labels=(Label(unit="net/conv0", flag="VANISHING", also=("net/act0", "net/conv1")),),
        allowed=FADE,
        cure={
            "build": lambda: small(
                convolve(2, *[8] * 7, norm=False, act=partial(nn.LeakyReLU, 0.3)), 1.2
            ),
            "optimizers": adam(2e-3),
            "steps": 40,
        },
    ),
    Run(
        name="bare_small_layers",
        kind="transformer",
        why="neither residual ways nor norms carry small layers",
        build=lambda: Bare(0.3),
        data=words(),
        losses=(entropy,),
        optimizers=adam(1e-4),
        batch=32,
        steps=20,
        labels=(
            Label(
                unit="net/layers.0",
                flag="VANISHING",
                also=("net/embed", "net/layers.1", "net/layers.0.0", "net/layers.0.2"),
            ),
        ),
        allowed=FADE,
        cure={"build": lambda: Bare(1.2), "optimizers": adam(5e-3)},
    ),
    Run(
        name="eight_gates_shut",
        kind="gated",
        why="eight gates of one twentieth, one behind the other",
        build=lambda: Gates(-3.0),
        data=smooth(),
        losses=(squares,),
        optimizers=sgd(0.05),
        steps=20,
        labels=(Label(unit="net/fc", flag="VANISHING", also=("net/layers.0",)),),
        allowed=(*FADE, ("net/gates*", "SATURATED")),
        cure={"build": lambda: Gates(3.0), "optimizers": adam(1e-2), "steps": 30},
        first=("fc.weight",),
    ),
    Run(
        name="waist_in_another_unit",
        kind="autoencoder",
        why="the code goes on divided by a hundred thousand",
        build=lambda: Waist(1e-5),
        data=sines(),
        losses=(squares,),
        optimizers=sgd(0.1),
        steps=30,
        labels=(
            Label(
                unit="net/encode",
                flag="VANISHING",
                also=("net/encode.fc0", "net/encode.out"),
                names=("IGNORED_CHANNELS",),
            ),
        ),
        allowed=(*FADE,),
        cure={"build": lambda: Waist(1.0), "optimizers": adam(1e-2)},
        first=("encode.fc0.weight", "around.weight"),
    ),
)

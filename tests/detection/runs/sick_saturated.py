"""Runs in which an activation works where it is flat."""

import torch
from torch import Generator, Tensor, nn

from tests.detection.parts import (
    Reader,
    adam,
    convolve,
    dense,
    entropy,
    pictures,
    smooth,
    squares,
    with_,
    words,
)
from tests.detection.run import Label, Run


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


def unscaled(random: Generator) -> tuple[Tensor, Tensor]:
    """Inputs of size fifty."""
    x, y = smooth()(random)
    return 50 * x, y


def cold_reader() -> nn.Module:
    """A transformer whose first attention looks at one word alone."""
    net = Reader(1)
    net.layers[0].attend.cold = 1e-3
    return net


RUNS = (
    Run(
        name="tanh_of_fifty",
        kind="mlp",
        why="inputs that nobody has scaled go into a tanh",
        build=lambda: dense(12, 24, 24, 3),
        data=unscaled,
        losses=(squares,),
        optimizers=adam(1e-3),
        labels=(Label(unit="net/act0", flag="SATURATED", also=("net/fc0",)),),
        allowed=(("*", "VANISHING"), ("*", "IGNORED_CHANNELS"), ("*", "LR_LOW")),
        cure={"data": smooth(), "optimizers": adam(1e-2)},
        first=("fc0.weight",),
    ),
    Run(
        name="clipped_activations",
        kind="cnn",
        why="a Hardtanh of values of 20",
        build=lambda: with_(
            convolve(2, 8, 8, norm=False, act=nn.Hardtanh), lambda net: net.conv0.weight.mul_(60)
        ),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        batch=32,
        steps=20,
        labels=(Label(unit="net/act0", flag="SATURATED", also=("net/conv0",)),),
        allowed=(("*", "VANISHING"), ("*", "IGNORED_CHANNELS"), ("*", "LR_LOW")),
        cure={
            "build": lambda: convolve(2, 8, 8, norm=False, act=nn.Hardtanh),
            "optimizers": adam(5e-3),
            "steps": 40,
        },
        first=("conv0.weight",),
    ),
    Run(
        name="attention_too_cold",
        kind="transformer",
        why="scores are a thousand times too large, each row looks at one word",
        build=cold_reader,
        data=words(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        batch=32,
        steps=20,
        labels=(Label(unit="net/layers.0.attend.weigh", flag="SATURATED"),),
        allowed=(("*", "VANISHING"), ("*", "EXPLODING"), ("*", "IGNORED_CHANNELS")),
        cure={"build": lambda: Reader(1), "optimizers": adam(5e-3)},
    ),
    Run(
        name="router_too_sure",
        kind="moe",
        why="scores of hundreds send each sample to one expert",
        build=lambda: Chooser(300.0),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-3),
        first=(),
        labels=(Label(unit="net/share", flag="SATURATED", also=("net/score",)),),
        allowed=(("*", "VANISHING"), ("*", "IGNORED_CHANNELS"), ("net/score", "LR_LOW")),
        cure={"build": lambda: Chooser(1.0), "optimizers": adam(2e-2)},
    ),
    Run(
        name="gate_too_sure",
        kind="gated",
        why="gates of 0 or 1 and nothing between",
        build=lambda: Gated(200.0),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-3),
        first=("fc.weight",),
        labels=(Label(unit="net/gate.1", flag="SATURATED", also=("net/gate", "net/gate.0")),),
        allowed=(
            ("*", "VANISHING"),
            ("*", "IGNORED_CHANNELS"),
            ("*", "LR_LOW"),
            ("*", "EXPLODING"),
        ),
        cure={"build": lambda: Gated(1.0), "optimizers": adam(1e-2)},
    ),
)

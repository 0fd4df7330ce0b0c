"""Healthy runs whose loss hardly falls, because most of it is noise, and small young layers."""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from tests.detection.parts import Layer, adam, dense, squares, with_
from tests.detection.run import Run


def drowned(random: Generator) -> tuple[Tensor, Tensor]:
    """Targets under noise ten times as strong."""
    x = torch.randn(512, 12, generator=random)
    return x, 0.3 * x[:, :3] + torch.randn(512, 3, generator=random)


def missed(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """What is missed of the part that can be known."""
    return (net(x) - 0.3 * x[:, :3]).square().mean()


class Speaker(nn.Module):
    """A language model with small positions, and blocks that begin as a thousandth."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(30, width), nn.Embedding(10, width)
        self.layers = nn.ModuleList(Layer(width, causal=True) for _ in range(2))
        self.scale = nn.ParameterList(nn.Parameter(torch.tensor(1e-3)) for _ in range(2))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 30)
        with torch.no_grad():
            self.place.weight.mul_(0.01)
            self.out.weight.mul_(0.05)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x) + self.place(torch.arange(x.shape[1]))
        for layer, scale in zip(self.layers, self.scale, strict=True):
            h = h + scale * (layer(h) - h)
        return self.out(self.norm(h))


def talk(random: Generator) -> tuple[Tensor, Tensor]:
    """Words at random, but that one in three follows from the one before."""
    x = torch.randint(1, 30, (256, 10), generator=random)
    for place in range(1, 10):
        follows = torch.rand(256, generator=random) < 0.35
        x[:, place] = torch.where(follows, x[:, place - 1] % 29 + 1, x[:, place])
    return x, x


def next_word(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The cross-entropy of the next word."""
    return F.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


def unsaid(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """How unlikely the word that may follow is, over chance."""
    said = net(x[:, :-1]).softmax(-1)
    return 1 / said.gather(2, (x[:, :-1] % 29 + 1)[..., None]).mean()


RUNS = (
    Run(
        name="mostly_noise",
        kind="mlp",
        why="nine tenths of the loss cannot be learnt, and the last layer begins small",
        build=lambda: with_(
            dense(12, 32, 32, 3, act=nn.SiLU), lambda net: net.out.weight.mul_(0.1)
        ),
        data=drowned,
        losses=(squares,),
        optimizers=adam(3e-3),
        steps=40,
        score=missed,
    ),
    Run(
        name="first_words",
        kind="transformer",
        why="a language model's loss falls by a few per cent, and positions begin small",
        build=Speaker,
        data=talk,
        losses=(next_word,),
        optimizers=adam(3e-3),
        steps=30,
        graph=False,
        score=unsaid,
    ),
)

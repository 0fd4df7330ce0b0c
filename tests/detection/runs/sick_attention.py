"""Runs in which a part of a transformer with ways around it is cut off or scaled away."""

from typing import Any

import torch
from torch import Tensor, nn

from tests.detection.parts import adam, entropy, sgd, words
from tests.detection.run import Label, Run
from tests.detection.runs.sick_fading import FADE


class Block(nn.Module):
    """Attention and a feed-forward part, normalised first, with one fault or none."""

    def __init__(self, width: int, *, factor: float = 1.0, cut: bool = False, cold: float = 1.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.k.bias.requires_grad_(False)  # a softmax takes it back
        self.weigh = nn.Softmax(-1)
        self.up, self.act, self.down = nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width)
        self.factor, self.cut = factor, cut
        with torch.no_grad():
            self.q.weight.mul_(cold)
            self.k.weight.mul_(cold)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm1(x)
        q = self.q(h).detach() if self.cut else self.q(h)
        scores = q @ self.k(h).transpose(1, 2) / x.shape[-1] ** 0.5
        x = x + self.mix(self.weigh(scores) @ self.v(h))
        return x + self.factor * self.down(self.act(self.up(self.norm2(x))))


class Blocks(nn.Module):
    """Three blocks, of which the one in the middle has the fault."""

    def __init__(self, width: int = 24, **fault: Any) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, width)
        self.layers = nn.Sequential(
            *(Block(width, **(fault if at == 1 else {})) for at in range(3))
        )
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(self.layers(self.embed(x))).mean(1))


RUNS = (
    Run(
        name="feed_forward_scaled_away",
        kind="transformer",
        why="a part with a way around it is divided by ten thousand",
        build=lambda: Blocks(factor=1e-4),
        data=words(),
        losses=(entropy,),
        optimizers=sgd(0.03, momentum=0.9),
        batch=32,
        steps=40,
        labels=(Label(unit="net/layers.1.down", flag="VANISHING"),),
        allowed=FADE,
        cure={"build": Blocks},
    ),
    Run(
        name="queries_cut_off",
        kind="transformer",
        why="queries are detached",
        build=lambda: Blocks(cut=True),
        data=words(),
        losses=(entropy,),
        optimizers=adam(2e-3),
        batch=32,
        labels=(Label(unit="net/layers.1.q", flag="NO_GRAD"),),
        cure={"build": Blocks},
    ),
    Run(
        name="scores_thirty_times",
        kind="transformer",
        why="queries and keys have weights of thirty times their size",
        build=lambda: Blocks(cold=30.0),
        data=words(),
        losses=(entropy,),
        optimizers=adam(2e-3),
        batch=32,
        labels=(Label(unit="net/layers.1.weigh", flag="SATURATED"),),
        allowed=(("*", "EXPLODING"), ("*", "VANISHING")),
        cure={"build": Blocks},
    ),
)

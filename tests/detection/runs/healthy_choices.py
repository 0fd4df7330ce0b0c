"""Healthy runs in which something is chosen: a softmax with padding, one that is sure, inf."""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from tests.detection.parts import Data, adam, blobs, dense, entropy, words
from tests.detection.run import Run


class Padded(nn.Module):
    """Attention over sentences that are all shorter than the longest there may be."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, width, padding_idx=0)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.weigh, self.out = nn.Softmax(-1), nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        h, is_word = self.embed(x), x != 0
        scores = self.query(h) @ self.key(h).transpose(1, 2) / 4
        shares = self.weigh(scores.masked_fill(~is_word[:, None], -math.inf))
        return self.out(((shares @ self.value(h)) * is_word[..., None]).sum(1) / 6)


def short(random: Generator) -> tuple[Tensor, Tensor]:
    """Sentences of six words and four paddings."""
    x, y = words()(random)
    x[:, 6:] = 0
    return x, y


class LookUp(nn.Module):
    """Attention that finds the row with the key in question."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(4, 4)
        self.weigh, self.out = nn.Softmax(-1), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        query, keys = self.query(x[:, 0, :8]), self.key(x[:, 1:, :8])
        shares = self.weigh(torch.einsum("bd,bnd->bn", query, keys) / 4)
        return self.out(torch.einsum("bn,bnd->bd", shares, self.value(x[:, 1:, 8:])))


def tables(random: Generator) -> tuple[Tensor, Tensor]:
    """Six rows of a key and a value, below a row with the key that is asked for."""
    keys, rows = torch.eye(8), torch.arange(192)
    order = torch.stack([torch.randperm(8, generator=random)[:6] for _ in rows])
    values = torch.randint(0, 4, (192, 6), generator=random)
    asked = torch.randint(0, 6, (192,), generator=random)
    table = torch.cat([keys[order], F.one_hot(values, 4).float()], 2)
    question = torch.cat([keys[order[rows, asked]], torch.zeros(192, 4)], 1)[:, None]
    return torch.cat([question, table], 1), values[rows, asked]


class Apart(nn.Module):
    """The distance of each sample to each other, and without end to itself."""

    def forward(self, z: Tensor) -> Tensor:
        return torch.cdist(z, z).square().masked_fill(torch.eye(len(z), dtype=torch.bool), math.inf)


class Neighbours(nn.Module):
    """How likely each sample is to have each other one as its neighbour."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.far, self.weigh = dense(12, 24, 6), Apart(), nn.Softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.weigh(-self.far(self.encode(x)))


def same_class(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Neighbourhood components: neighbours should be of one class."""
    return -((net(x) * (y[:, None] == y)).sum(1) + 1e-9).log().mean()


def _attention(
    name: str, why: str, build: Callable[[], nn.Module], data: Data, rate: float, steps: int
) -> Run:
    return Run(
        name=name,
        kind="attention",
        why=why,
        build=build,
        data=data,
        losses=(entropy,),
        optimizers=adam(rate),
        steps=steps,
        idle=("key.bias",),  # a softmax takes it back
    )


RUNS = (
    _attention(
        "never_so_long", "the last places of each sentence are masked", Padded, short, 5e-3, 30
    ),
    _attention(
        "found_and_sure", "attention turns one-hot because that is right", LookUp, tables, 3e-2, 250
    ),
    Run(
        name="far_from_itself",
        kind="contrastive",
        why="the distance of a sample to itself is set to inf",
        build=Neighbours,
        data=blobs(),
        losses=(same_class,),
        optimizers=adam(3e-3),
        steps=40,
        idle=("encode.out.bias",),  # distances do not know it
    ),
)

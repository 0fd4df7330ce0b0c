"""Healthy runs of the architectures that people train most, some of which take their loss."""

from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from tests.detection.parts import adam, blobs, chain, entropy, pictures, sgd, squares, words
from tests.detection.run import Run


class Encoder(nn.Module):
    """The transformer encoder of torch."""

    def __init__(self, *, first: bool, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=first
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layers(self.embed(x)).mean(1))


class Judge(nn.Module):
    """A classifier that takes its loss itself, and returns it with its logits or alone."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__()
        self.body = chain(fc0=nn.Linear(12, 24), act0=nn.GELU(), fc1=nn.Linear(24, 24))
        self.out, self.alone = nn.Linear(24, 4), alone

    def forward(self, x: Tensor, y: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        logits = self.out(self.body(x))
        loss = F.cross_entropy(logits, y)
        return loss if self.alone else (loss, logits)


class Chosen(nn.Module):
    """Two experts of four for each sample."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.fc, self.gate = nn.Linear(12, width), nn.Linear(width, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width)) for _ in range(4)
        )
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        share, chosen = self.gate(x).softmax(-1).topk(2, -1)
        mixed = torch.zeros_like(x)
        for place, expert in enumerate(self.experts):
            rows, which = (chosen == place).nonzero(as_tuple=True)
            mixed = mixed.index_add(0, rows, expert(x[rows]) * share[rows, which, None])
        return self.out(self.norm(x + mixed))


class Denoiser(nn.Module):
    """Blocks that are told the time by an embedding."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width))
        self.fc = nn.Linear(2, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(),
                          nn.Linear(width, width))
            for _ in range(3)
        )  # fmt: skip
        self.out = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        waves = x[:, 2:] * torch.arange(1, 5)
        time, h = self.time(torch.cat([waves.sin(), waves.cos()], 1)), self.fc(x[:, :2])
        for block in self.blocks:
            h = h + block(h + time)
        return self.out(h)


class Mixer(nn.Module):
    """Layers over patches and over channels in turn."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.patches, self.norm0 = nn.Conv2d(2, width, 2, 2), nn.LayerNorm(width)
        self.over_patches = nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16))
        self.norm1 = nn.LayerNorm(width)
        self.over_channels = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))
        self.norm2, self.out = nn.LayerNorm(width), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.over_patches(self.norm0(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.over_channels(self.norm1(x))
        return self.out(self.norm2(x).mean(1))


def noisy_ring(random: Generator) -> tuple[Tensor, Tensor]:
    """Points near a ring with a time and its noise, and the noise as the target."""
    angle, time = torch.rand(256, generator=random) * 6.28, torch.rand(256, 1, generator=random)
    noise = torch.randn(256, 2, generator=random)
    clean = torch.stack([angle.cos(), angle.sin()], 1)
    return torch.cat([(1 - time).sqrt() * clean + time.sqrt() * noise, time], 1), noise


def alike(net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """How hard it is to find each sample among others, by a copy with some noise."""
    first, second = net(x), net(x + 0.1 * x.roll(1, 0))
    scores = F.normalize(first, dim=1) @ F.normalize(second, dim=1).T
    return F.cross_entropy(scores / 0.2, torch.arange(len(x)))


def its_own(net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The loss that the network returns, alone or first."""
    result = net(x, y)
    return result if isinstance(result, Tensor) else result[0]


RUNS = (
    *(
        Run(
            name=f"torch_encoder_norm_{'first' if first else 'last'}",
            kind="transformer",
            why="queries, keys and values are one weight, used without a call",
            build=lambda first=first: Encoder(first=first),
            data=words(),
            losses=(entropy,),
            optimizers=adam(2e-3),
            batch=32,
        )
        for first in (True, False)
    ),
    *(
        Run(
            name=f"loss_inside_{'alone' if alone else 'beside_logits'}",
            kind="mlp",
            why="the gradient of the loss at itself is 1, also when the problem is solved",
            build=lambda alone=alone: Judge(alone=alone),
            data=blobs(),
            losses=(its_own,),
            optimizers=adam(1e-2),
            graph=False,
            steps=40,
        )
        for alone in (True, False)
    ),
    Run(
        name="two_experts_each",
        kind="moe",
        why="the choice among experts is no number that has a gradient",
        build=Chosen,
        data=blobs(),
        losses=(entropy,),
        optimizers=adam(5e-3),
    ),
    Run(
        name="one_encoder_twice",
        kind="contrastive",
        why="an encoder is called twice in a step",
        build=lambda: chain(fc0=nn.Linear(12, 32), act0=nn.GELU(), out=nn.Linear(32, 16)),
        data=blobs(),
        losses=(alike,),
        optimizers=adam(5e-3),
        graph=False,
    ),
    Run(
        name="time_embedded",
        kind="diffusion",
        why="a branch tells all blocks the time",
        build=Denoiser,
        data=noisy_ring,
        losses=(squares,),
        optimizers=sgd(0.05, momentum=0.9),
        batch=128,
        steps=40,
    ),
    Run(
        name="mixed_patches",
        kind="mixer",
        why="each block has two ways around it",
        build=Mixer,
        data=pictures(),
        losses=(entropy,),
        optimizers=sgd(0.03, momentum=0.9),
        batch=32,
        idle=("over_patches.2.bias",),  # the same for all channels, so a norm takes it back
    ),
)

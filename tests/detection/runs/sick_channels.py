"""Runs in which channels are ignored, or say the same as others."""

from functools import partial

import torch
from torch import Generator, Tensor, nn

from tests.detection.parts import (
    Mean,
    adam,
    chain,
    entropy,
    pictures,
    sines,
    squares,
    times,
    waves,
)
from tests.detection.run import Label, Run


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


GROUPS = {"net/both": {"left": tuple(range(12)), "right": tuple(range(12, 24))}}


RUNS = (
    Run(
        name="code_cut_short",
        kind="autoencoder",
        why="the decoder reads 7 of 12 numbers, and a trillionth of the others",
        build=lambda: chain(
            encode=nn.Sequential(nn.Linear(12, 12), nn.Tanh()),
            cut=Cut(7, 1e-12),
            out=nn.Linear(12, 12),
        ),
        data=sines(),
        losses=(times(squares, 1e5),),
        optimizers=adam(1e-2),
        labels=(
            Label(unit="net/encode", flag="IGNORED_CHANNELS", count=5, also=("net/encode.1",)),
        ),
        allowed=(("net/encode.0", "IGNORED_CHANNELS"),),
        cure={
            "build": lambda: chain(
                encode=nn.Sequential(nn.Linear(12, 12), nn.Tanh()),
                cut=Cut(12),
                out=nn.Linear(12, 12),
            )
        },
        first=("encode.0.weight",),
    ),
    Run(
        name="state_half_read",
        kind="rnn",
        why="the last layer reads 9 of 16 numbers",
        build=lambda: Tail(9),
        data=waves(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        labels=(Label(unit="net/feel", flag="IGNORED_CHANNELS", count=7, also=("net/feel.1",)),),
        allowed=(("net/feel.0", "IGNORED_CHANNELS"),),
        cure={"build": lambda: Tail(16)},
        first=("rnn.weight_ih_l0",),
    ),
    Run(
        name="channels_left_behind",
        kind="cnn",
        why="the next convolution was built for six of ten channels",
        build=lambda: Cropped(6),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        labels=(Label(unit="net/see", flag="IGNORED_CHANNELS", count=4, also=("net/see.1",)),),
        allowed=(("net/see.0", "IGNORED_CHANNELS"),),
        cure={"build": lambda: Cropped(10)},
        first=("see.0.weight",),
    ),
    Run(
        name="same_eyes_twice",
        kind="fusion",
        why="two encoders began as copies and see nearly the same",
        build=lambda: Views(same=True),
        data=partial(two_views, 0.995),
        losses=(squares,),
        optimizers=adam(1e-3),
        steps=16,
        groups=GROUPS,
        labels=(Label(unit="net/both", flag="LEAKAGE"),),
        allowed=(("net", "LEAKAGE"),),
        cure={
            "build": lambda: Views(same=False),
            "data": partial(two_views, 0.2),
            "optimizers": adam(1e-2),
            "steps": 30,
        },
        first=(),
    ),
    Run(
        name="same_series_twice",
        kind="fusion",
        why="the same in (batch, time, channel)",
        build=lambda: Views(same=True),
        data=partial(two_series, 1.0),
        losses=(squares,),
        optimizers=adam(1e-3),
        batch=32,
        steps=16,
        groups=GROUPS,
        labels=(Label(unit="net/both", flag="LEAKAGE"),),
        allowed=(("net", "LEAKAGE"),),
        cure={
            "build": lambda: Views(same=False),
            "data": partial(two_series, 0.2),
            "optimizers": adam(2e-2),
            "steps": 40,
        },
        first=(),
    ),
)

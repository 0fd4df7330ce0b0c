"""Healthy runs of networks whose parts take turns, or look at one another."""

from copy import deepcopy
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam

from tests.detection.parts import (
    adam,
    blobs,
    dense,
    sines,
    smooth,
    squares,
)
from tests.detection.run import Run


class Experts(nn.Module):
    """Each sample goes to one expert; those that get none are not called."""

    def __init__(self, width: int = 12, outputs: int = 3, count: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList(dense(width, 16, outputs) for _ in range(count))
        with torch.no_grad():  # the first inputs say who is asked
            self.router.weight.mul_(0.1)[:, :count].add_(torch.eye(count))

    def forward(self, x: Tensor) -> Tensor:
        share, chosen = self.router(x).softmax(-1).max(-1)
        out = x.new_zeros(len(x), 3)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * share[rows, None])
        return out


class Mixture(nn.Module):
    """All experts answer, a gate weighs them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(12, 4), nn.Softmax(-1))
        self.experts = nn.ModuleList(nn.Linear(12, 3) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        answers = torch.stack([one(x) for one in self.experts], 1)
        return (self.gate(x)[:, :, None] * answers).sum(1)


class Variational(nn.Module):
    """A variational autoencoder, which puts means and log-variances beside what it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(nn.Linear(12, 24), nn.Tanh())
        self.mean, self.spread = nn.Linear(24, 4), nn.Linear(24, 4)
        self.make = dense(4, 24, 12)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.look(x)
        mean, spread = self.mean(seen), self.spread(seen)
        drawn = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return torch.cat([self.make(drawn), mean, spread], 1)


class Teacher(nn.Module):
    """A network that follows a slow copy of itself."""

    def __init__(self) -> None:
        super().__init__()
        self.online = dense(12, 24, 8)
        self.guess = nn.Linear(8, 8)
        self.slow = deepcopy(self.online).requires_grad_(requires_grad=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            wanted = self.slow(x + 0.1)
        return self.guess(self.online(x)), wanted

    @torch.no_grad()
    def follow(self) -> None:
        """Move the slow copy a little."""
        for slow, fast in zip(self.slow.parameters(), self.online.parameters(), strict=True):
            slow.lerp_(fast, 0.02)


class Turns(nn.Module):
    """One encoder, two heads, of which one is used in a step."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 24), nn.Tanh())
        self.first, self.second = nn.Linear(24, 3), nn.Linear(24, 3)

    def forward(self, x: Tensor, which: int) -> Tensor:
        return (self.second if which else self.first)(self.encoder(x))


def two_at_a_time(random: Generator) -> tuple[Tensor, Tensor]:
    """Samples of four kinds; a batch of 32 holds two of them, and so two experts wait."""
    kind = (torch.arange(256) // 64 % 2) * 2 + torch.arange(256) % 2
    x = 0.5 * torch.randn(256, 12, generator=random)
    x[torch.arange(256), kind] += 5
    w = torch.randn(4, 12, 3, generator=random) * 0.4
    return x, torch.einsum("ni,nio->no", x, w[kind]) - 5 * w[kind, kind]


def evidence(weight: float) -> Any:
    """A VAE's loss, with a weight for the distance to the prior."""

    def loss(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
        made, mean, spread = net(x).split([12, 4, 4], 1)
        far = 0.5 * (mean.square() + spread.exp() - 1 - spread).mean()
        return F.mse_loss(made, y) + weight * far

    return loss


def follows(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """How far the online network is from the slow one."""
    guess, wanted = net(x)
    return F.mse_loss(guess, wanted)


def triplets(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Samples of a class should be nearer than others; the network is called three times."""
    near, far = x.roll(4, 0), x.roll(1, 0)
    return F.triplet_margin_loss(net(x), net(near), net(far), margin=1.0)


def in_turns(net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """One head in even steps, the other in odd ones."""
    which = step % 2
    return F.mse_loss(net(x, which), -y if which else y)


def both_heads(net: Any, x: Tensor, y: Tensor) -> Tensor:
    """How far both heads are from what they should say."""
    return F.mse_loss(net(x, 0), y) + F.mse_loss(net(x, 1), -y)


def tell(net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The critic's turn: tell what is true from what is made."""
    made = net["maker"](y).detach()
    return F.softplus(-net["critic"](x)).mean() + F.softplus(net["critic"](made)).mean()


def fool(net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The maker's turn."""
    return F.softplus(-net["critic"](net["maker"](y))).mean()


def shifted(random: Generator) -> tuple[Tensor, Tensor]:
    """True samples, and noise to make others of."""
    return torch.randn(256, 2, generator=random) * 0.4 + 2, torch.randn(256, 4, generator=random)


def away(net: Any, x: Tensor, y: Tensor) -> Tensor:
    """How far what is made is from what is true, in the mean."""
    return (net["maker"](y).mean(0) - x.mean(0)).square().sum()


def game() -> dict[str, nn.Module]:
    """A maker and a critic, two nodes."""
    leaky = lambda: nn.LeakyReLU(0.2)  # noqa: E731
    return {"maker": dense(4, 24, 2, act=leaky), "critic": dense(2, 24, 1, act=leaky)}


def players(net: Any) -> tuple[torch.optim.Optimizer, ...]:
    """An optimizer for each, the critic first."""
    return (
        Adam(net["critic"].parameters(), lr=5e-3, betas=(0.5, 0.9)),
        Adam(net["maker"].parameters(), lr=1e-2, betas=(0.5, 0.9)),
    )


RUNS = (
    Run(
        name="experts_in_turns",
        kind="moe",
        why="an expert waits for eight steps",
        build=Experts,
        data=two_at_a_time,
        losses=(squares,),
        optimizers=adam(1e-2),
        batch=32,
        steps=48,
    ),
    Run(
        name="all_experts_weighed",
        kind="moe",
        why="each expert gets a share of the gradient",
        build=Mixture,
        data=smooth(),
        losses=(squares,),
        optimizers=adam(2e-2),
        steps=40,
    ),
    Run(
        name="maker_and_critic",
        kind="gan",
        why="losses rise and fall, each player waits for the other",
        build=game,
        data=shifted,
        losses=(tell, fool),
        optimizers=players,
        steps=60,
        score=away,
        graph=False,
    ),
    Run(
        name="variational",
        kind="autoencoder",
        why="a small price on the code",
        build=Variational,
        data=sines(hidden=2),
        losses=(evidence(0.01),),
        optimizers=adam(1e-2),
        steps=40,
    ),
    Run(
        name="triplets",
        kind="siamese",
        why="called three times, most triplets cost nothing",
        build=lambda: dense(12, 24, 6),
        data=blobs(apart=1.0),
        losses=(triplets,),
        optimizers=adam(5e-3),
        steps=30,
        idle=("out.bias",),
    ),
    Run(
        name="slow_teacher",
        kind="siamese",
        why="a copy follows by hand and takes no gradient",
        build=Teacher,
        data=smooth(),
        losses=(follows,),
        optimizers=adam(5e-3),
        after=lambda net: net.follow(),
        graph=False,
    ),
    Run(
        name="heads_in_turns",
        kind="multi-task",
        why="each head learns in every other step",
        build=Turns,
        data=smooth(),
        losses=(in_turns,),
        optimizers=adam(1e-2),
        steps=40,
        score=both_heads,
        graph=False,
        first=("encoder.0.weight",),
    ),
)

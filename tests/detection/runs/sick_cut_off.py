"""Runs in which a part gets no gradient, or is not used."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.detection.parts import (
    adam,
    dense,
    entropy,
    pictures,
    sgd,
    sines,
    smooth,
    squares,
    words,
)
from tests.detection.run import Label, Run
from tests.detection.runs.healthy_parts import (
    Experts,
    away,
    fool,
    game,
    players,
    shifted,
    tell,
)


class Detached(nn.Module):
    """An encoder whose output may be cut off from the graph, and a way around it."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.Tanh())
        self.around = nn.Sequential(nn.Linear(12, 8), nn.Tanh())
        self.out = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.encoder(x)
        if self.how == "detach":
            seen = seen.detach()
        if self.how == "numpy":
            seen = torch.from_numpy(seen.detach().numpy().copy())
        return self.out(torch.cat([seen, self.around(x)], 1))


class Hard(nn.Module):
    """A router that picks by argmax, which has no gradient, or by its shares, which have one."""

    def __init__(self, *, soft: bool) -> None:
        super().__init__()
        self.router = nn.Linear(12, 3)
        self.experts = nn.ModuleList(nn.Linear(12, 3) for _ in range(3))
        self.soft = soft

    def forward(self, x: Tensor) -> Tensor:
        scores = self.router(x)
        share = scores.softmax(-1) if self.soft else F.one_hot(scores.argmax(-1), 3).float()
        return (share[:, :, None] * torch.stack([one(x) for one in self.experts], 1)).sum(1)


class Codebook(nn.Module):
    """An autoencoder of learned codes; the gradient passes them straight, or is forgotten."""

    def __init__(self, *, straight: bool) -> None:
        super().__init__()
        self.encode, self.codes = dense(12, 16, 4), nn.Embedding(16, 4)
        self.decode = dense(4, 16, 12)
        self.straight = straight

    def forward(self, x: Tensor) -> Tensor:
        wanted = self.encode(x)
        found = self.codes(torch.cdist(wanted.detach(), self.codes.weight.detach()).argmin(1))
        if self.straight:
            found = found + wanted - wanted.detach()
        return self.decode(found)


class Quiet(nn.Module):
    """A recurrent network that reads embeddings made without a graph."""

    def __init__(self, *, graph: bool) -> None:
        super().__init__()
        self.embed, self.rnn, self.out = (
            nn.Embedding(30, 12),
            nn.GRU(12, 12, batch_first=True),
            nn.Linear(12, 2),
        )
        self.graph = graph

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.graph):
            seen = self.embed(x)
        return self.out(self.rnn(seen)[0][:, -1])


class OffByOne(nn.Module):
    """Residual blocks, the last of which a loop may forget."""

    def __init__(self, used: int) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 16)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(4))
        self.out, self.used = nn.Linear(16, 3), used

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc(x)
        for block in self.blocks[: self.used]:
            x = x + block(x)
        return self.out(x)


class Helper(nn.Module):
    """A picture network with a second head for an aid that the loss may leave out."""

    def __init__(self, *, helped: bool) -> None:
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.Tanh())
        self.out, self.aid = nn.Linear(8, 3), nn.Linear(8, 3)
        self.helped = helped

    def forward(self, x: Tensor) -> Tensor:
        seen = self.see(x).mean((2, 3))
        return self.out(seen) + self.aid(seen) if self.helped else self.out(seen)


def fool_nobody(net: Any, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The maker's turn, by the critic's line."""
    return F.softplus(-net["critic"](net["maker"](y).detach())).mean()


def never_asked() -> nn.Module:
    """Experts of whom one is never chosen."""
    net = Experts()
    with torch.no_grad():
        net.router.bias[3] = -1e4
    return net


STILL = (("*", "VANISHING"), ("*", "IGNORED_CHANNELS"))


ANY_STILL = ("FROZEN", "NO_GRAD", "UNUSED")


RUNS = (
    Run(
        name="encoder_detached",
        kind="fusion",
        why="`detach` was left in the forward",
        build=lambda: Detached("detach"),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        labels=(
            Label(unit="net/encoder", flag="NO_GRAD", also=("net/encoder.0",), names=ANY_STILL),
        ),
        allowed=STILL,
        cure={"build": lambda: Detached("")},
        first=("encoder.0.weight", "around.0.weight"),
    ),
    Run(
        name="through_numpy",
        kind="fusion",
        why="the features went through numpy",
        build=lambda: Detached("numpy"),
        data=smooth(),
        losses=(squares,),
        optimizers=sgd(0.1),
        labels=(
            Label(unit="net/encoder", flag="NO_GRAD", also=("net/encoder.0",), names=ANY_STILL),
        ),
        allowed=STILL,
        cure={"build": lambda: Detached("")},
        first=("encoder.0.weight", "around.0.weight"),
    ),
    Run(
        name="router_by_argmax",
        kind="moe",
        why="argmax has no gradient",
        build=lambda: Hard(soft=False),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        labels=(Label(unit="net/router", flag="NO_GRAD", names=ANY_STILL),),
        allowed=STILL,
        cure={"build": lambda: Hard(soft=True)},
    ),
    Run(
        name="codes_without_a_way_back",
        kind="autoencoder",
        why="the gradient of codes was not passed on",
        build=lambda: Codebook(straight=False),
        data=sines(),
        losses=(squares,),
        optimizers=adam(1e-2),
        steps=40,
        labels=(
            Label(
                unit="net/encode",
                flag="NO_GRAD",
                also=("net/encode.fc0", "net/encode.out"),
                names=ANY_STILL,
            ),
        ),
        allowed=(*STILL, ("net/codes", "COLLAPSE"), ("net/decode*", "COLLAPSE")),
        cure={"build": lambda: Codebook(straight=True)},
    ),
    Run(
        name="words_without_a_graph",
        kind="embedding",
        why="embeddings are made under `no_grad`",
        build=lambda: Quiet(graph=False),
        data=words(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        steps=40,
        labels=(Label(unit="net/embed", flag="NO_GRAD", names=ANY_STILL),),
        allowed=STILL,
        cure={"build": lambda: Quiet(graph=True)},
    ),
    Run(
        name="last_block_forgotten",
        kind="residual",
        why="a loop ends one block too early",
        build=lambda: OffByOne(3),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        labels=(
            Label(unit="net/blocks.3", flag="UNUSED", also=("net/blocks.3.0",), names=ANY_STILL),
        ),
        allowed=(("net/blocks.3*", "*"),),
        cure={"build": lambda: OffByOne(4)},
        first=("fc.weight",),
    ),
    Run(
        name="second_head_forgotten",
        kind="multi-task",
        why="a head that no loss asks for",
        build=lambda: Helper(helped=False),
        data=pictures(),
        losses=(entropy,),
        optimizers=adam(2e-2),
        batch=32,
        labels=(Label(unit="net/aid", flag="UNUSED", names=ANY_STILL),),
        cure={"build": lambda: Helper(helped=True)},
        first=("see.0.weight",),
    ),
    Run(
        name="expert_never_asked",
        kind="moe",
        why="the router never chooses one of four experts",
        build=never_asked,
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-2),
        steps=40,
        labels=(
            Label(
                unit="net/experts.3", flag="UNUSED", also=("net/experts.3.fc0",), names=ANY_STILL
            ),
        ),
        allowed=(("net/experts.3*", "*"), ("net/router", "IGNORED_CHANNELS")),
        cure={"build": lambda: Experts()},
    ),
    Run(
        name="maker_never_told",
        kind="gan",
        why="what was made is cut off in the maker's turn too",
        build=game,
        data=shifted,
        losses=(tell, fool_nobody),
        optimizers=players,
        graph=False,
        steps=30,
        labels=(Label(unit="maker", flag="NO_GRAD", also=("maker/fc0",), names=ANY_STILL),),
        allowed=(*STILL, ("maker*", "NO_GRAD")),
        cure={"losses": (tell, fool), "steps": 60, "score": away},
    ),
)

"""Runs in which something does not move, gets no gradient, is not used, or keeps old gradients."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam, Optimizer

from tests.detection.parts import (
    Reader, adam, blobs, convolve, dense, entropy, pictures, sgd, sines, smooth, split, squares,
    two_rates, waves, words,
)  # fmt: skip
from tests.detection.run import Label, Run
from tests.detection.runs.healthy_parts import Experts


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


class Coarse(nn.Module):
    """A network in bfloat16, whose norm begins at 1, where the next number is 1.008."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        self.fc, self.norm = nn.Linear(12, 24), nn.RMSNorm(24)
        self.act, self.out = nn.Tanh(), nn.Linear(24, 3)
        self.to(kind)
        self.kind = kind

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.act(self.norm(self.fc(x.to(self.kind)))))


def without(*starts: str, rate: float = 1e-2) -> Any:
    """Adam over all but what somebody forgot."""
    return lambda net: (Adam(split(net, *starts)[1], lr=rate),)


def for_another(part: str, rate: float = 1e-2) -> Any:
    """An optimizer that holds a copy of a part, as after the part was put onto a device anew."""

    def make(net: nn.Module) -> tuple[Optimizer, ...]:
        those, others = split(net, part)
        return (Adam([*others, *deepcopy(those)], lr=rate),)

    return make


class Reads(nn.Module):
    """A recurrent network that tells the class at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.GRU(4, 12, batch_first=True), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0][:, -1])


def never_asked() -> nn.Module:
    """Experts of whom one is never chosen."""
    net = Experts()
    with torch.no_grad():
        net.router.bias[3] = -1e4
    return net


def restored(net: Any) -> None:
    """Put the encoder's weights back to those that it began with."""
    with torch.no_grad():
        for one, first in zip(net.encoder.parameters(), net.begun, strict=True):
            one.copy_(first)


class Loaded(nn.Module):
    """A network that keeps the weights its encoder began with."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 24), nn.Tanh())
        self.out = nn.Linear(24, 3)
        self.begun = [one.detach().clone() for one in self.encoder.parameters()]

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.encoder(x))


STILL = (("*", "VANISHING"), ("*", "IGNORED_CHANNELS"))
OLD = (("*", "LR_HIGH"), ("*", "EXPLODING"), ("*", "STALE_GRAD"))
ANY_STILL = ("FROZEN", "NO_GRAD", "UNUSED")

RUNS = (
    Run(name="head_left_out", kind="mlp", why="the optimizer was made before the head",
        build=lambda: dense(12, 24, 4), data=blobs(), losses=(entropy,), optimizers=without("out"),
        labels=(Label(unit="net/out", flag="FROZEN"),), allowed=(("*", "STALE_GRAD"),), cure={"optimizers": adam(1e-2)}, first=("fc0.weight",)),
    Run(name="optimizer_of_a_copy", kind="rnn", why="the optimizer holds a copy of the recurrent part",
        build=lambda: Reads(), data=waves(), losses=(entropy,), optimizers=for_another("rnn"), batch=32,
        labels=(Label(unit="net/rnn", flag="FROZEN"),), allowed=(("*", "STALE_GRAD"),), cure={"optimizers": adam(1e-2)}, first=("rnn.weight_ih_l0",)),
    Run(name="group_at_rate_nought", kind="transformer", why="a layer's group has a rate of 0",
        build=lambda: Reader(), data=words(), losses=(entropy,), batch=32, steps=20, optimizers=two_rates(Adam, 0.0, 5e-3, "layers.0."),
        labels=(Label(unit="net/layers.0", flag="FROZEN", also=("net/layers.0.attend", "net/layers.0.up"), names=("LR_LOW",)),),
        allowed=(("net/layers.0*", "FROZEN"), ("net/layers.0*", "LR_LOW")), cure={"optimizers": adam(5e-3)}),
    Run(name="weights_put_back", kind="mlp", why="a checkpoint is loaded into the encoder after each step",
        build=Loaded, data=smooth(), losses=(squares,), optimizers=adam(1e-2), after=restored,
        labels=(Label(unit="net/encoder", flag="FROZEN", also=("net/encoder.0",)),), allowed=(), cure={"after": None}, first=(), scales=False),
    Run(name="norm_in_bfloat16", kind="mixed precision", why="a step of a ten-thousandth is lost next to a weight of 1",
        build=lambda: Coarse(torch.bfloat16), data=smooth(), losses=(squares,), optimizers=adam(3e-4),
        labels=(Label(unit="net/norm", flag="FROZEN", names=("LR_LOW",)),), allowed=(("*", "LR_LOW"),),
        cure={"build": lambda: Coarse(torch.float32), "optimizers": adam(1e-2)}, scales=False),
    Run(name="encoder_detached", kind="fusion", why="`detach` was left in the forward",
        build=lambda: Detached("detach"), data=smooth(), losses=(squares,), optimizers=adam(1e-2),
        labels=(Label(unit="net/encoder", flag="NO_GRAD", also=("net/encoder.0",), names=ANY_STILL),), allowed=STILL,
        cure={"build": lambda: Detached("")}, first=("encoder.0.weight", "around.0.weight")),
    Run(name="through_numpy", kind="fusion", why="the features went through numpy",
        build=lambda: Detached("numpy"), data=smooth(), losses=(squares,), optimizers=sgd(0.1),
        labels=(Label(unit="net/encoder", flag="NO_GRAD", also=("net/encoder.0",), names=ANY_STILL),), allowed=STILL,
        cure={"build": lambda: Detached("")}, first=("encoder.0.weight", "around.0.weight")),
    Run(name="router_by_argmax", kind="moe", why="argmax has no gradient",
        build=lambda: Hard(soft=False), data=smooth(), losses=(squares,), optimizers=adam(1e-2),
        labels=(Label(unit="net/router", flag="NO_GRAD", names=ANY_STILL),), allowed=STILL, cure={"build": lambda: Hard(soft=True)}),
    Run(name="codes_without_a_way_back", kind="autoencoder", why="the gradient of codes was not passed on",
        build=lambda: Codebook(straight=False), data=sines(), losses=(squares,), optimizers=adam(1e-2), steps=40,
        labels=(Label(unit="net/encode", flag="NO_GRAD", also=("net/encode.fc0", "net/encode.out"), names=ANY_STILL),), allowed=STILL,
        cure={"build": lambda: Codebook(straight=True)}),
    Run(name="words_without_a_graph", kind="embedding", why="embeddings are made under `no_grad`",
        build=lambda: Quiet(graph=False), data=words(), losses=(entropy,), optimizers=adam(1e-2), batch=32, steps=40,
        labels=(Label(unit="net/embed", flag="NO_GRAD", names=ANY_STILL),), allowed=STILL, cure={"build": lambda: Quiet(graph=True)}),
    Run(name="last_block_forgotten", kind="residual", why="a loop ends one block too early",
        build=lambda: OffByOne(3), data=smooth(), losses=(squares,), optimizers=adam(1e-2),
        labels=(Label(unit="net/blocks.3", flag="UNUSED", also=("net/blocks.3.0",), names=ANY_STILL),), allowed=(("net/blocks.3*", "*"),),
        cure={"build": lambda: OffByOne(4)}, first=("fc.weight",)),
    Run(name="second_head_forgotten", kind="multi-task", why="a head that no loss asks for",
        build=lambda: Helper(helped=False), data=pictures(), losses=(entropy,), optimizers=adam(2e-2), batch=32,
        labels=(Label(unit="net/aid", flag="UNUSED", names=ANY_STILL),), cure={"build": lambda: Helper(helped=True)}, first=("see.0.weight",)),
    Run(name="expert_never_asked", kind="moe", why="the router never chooses one of four experts",
        build=never_asked, data=smooth(), losses=(squares,), optimizers=adam(1e-2), steps=40,
        labels=(Label(unit="net/experts.3", flag="UNUSED", also=("net/experts.3.fc0",), names=ANY_STILL),), allowed=(("net/experts.3*", "*"), ("net/router", "IGNORED_CHANNELS")),
        cure={"build": lambda: Experts()}),
    Run(name="nothing_zeroed", kind="mlp", why="`zero_grad` is missing",
        build=lambda: dense(12, 24, 3), data=smooth(), losses=(squares,), optimizers=sgd(0.01), zeroes=False, steps=20,
        labels=(Label(unit="net", flag="STALE_GRAD", also=("net/fc0", "net/out")),), allowed=OLD, cure={"zeroes": True, "optimizers": adam(1e-2), "steps": 30},
        first=("fc0.weight",)),
    Run(name="nothing_zeroed_in_pictures", kind="cnn", why="`zero_grad` is missing, and Adam hides it",
        build=lambda: convolve(2, 8, 8, act=nn.Tanh), data=pictures(), losses=(entropy,), optimizers=adam(1e-3), zeroes=False, batch=32, steps=20,
        labels=(Label(unit="net", flag="STALE_GRAD", also=("net/conv0", "net/out")),), allowed=OLD, cure={"zeroes": True, "optimizers": adam(1e-2), "steps": 30},
        first=("conv0.weight",)),
    Run(name="nothing_zeroed_in_words", kind="transformer", why="`zero_grad` is missing while two batches make a step",
        build=lambda: Reader(1), data=words(), losses=(entropy,), optimizers=adam(1e-3), zeroes=False, micro=2, batch=16, steps=20,
        labels=(Label(unit="net", flag="STALE_GRAD", also=("net/out", "net/embed")),), allowed=OLD, cure={"zeroes": True, "optimizers": adam(5e-3), "steps": 30}),
)  # fmt: skip

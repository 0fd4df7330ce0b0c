"""Sick runs whose activations stand at an end: a floor, a ceiling, shut gates, one-hot."""

import torch
from torch import Tensor, nn

from tests.detection.parts import adam, dense, entropy, smooth, squares, waves, with_
from tests.detection.run import Label, Run


class Glance(nn.Module):
    """An LSTM, and attention over its states."""

    def __init__(self, hot: float = 1.0) -> None:
        super().__init__()
        self.read = nn.LSTM(4, 24, batch_first=True)
        self.key, self.score = nn.Linear(24, 16), nn.Linear(16, 1, bias=False)
        self.weigh, self.out, self.hot = nn.Softmax(1), nn.Linear(24, 3), hot

    def forward(self, x: Tensor) -> Tensor:
        h, _ = self.read(x)
        shares = self.weigh(self.score(torch.tanh(self.key(h)))[..., 0] * self.hot)
        return self.out((shares[..., None] * h).sum(1))


class Gated(nn.Module):
    """Gated linear units one after the other, or each with a way around it."""

    def __init__(self, depth: int, shut: float = 0.0, *, around: bool = False) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 16)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 48), nn.GLU(), nn.Linear(24, 16)) for _ in range(depth)
        )
        self.out, self.around = nn.Linear(16, 3), around
        with torch.no_grad():
            for block in self.blocks:
                block[0].bias[24:] -= shut  # type: ignore[index]

    def forward(self, x: Tensor) -> Tensor:
        h = self.fc(x)
        for block in self.blocks:
            h = h + block(h) if self.around else block(h)
        return self.out(h)


class Residual(nn.Module):
    """Three parts with a way around each."""

    def __init__(self, off: float = 0.0) -> None:
        super().__init__()
        self.fc, self.out = nn.Linear(12, 16), nn.Linear(16, 3)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 24), nn.SiLU(), nn.Linear(24, 16)) for _ in range(3)
        )
        with torch.no_grad():
            self.blocks[1][0].bias.sub_(off)  # type: ignore[index]

    def forward(self, x: Tensor) -> Tensor:
        h = self.fc(x)
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


def _floor(net: nn.Sequential) -> None:
    net.fc1.weight.mul_(2)  # type: ignore[union-attr, operator]
    net.fc1.bias.sub_(9)  # type: ignore[union-attr, operator]


_BESIDE = (("net*", "VANISHING"), ("net*", "IGNORED_CHANNELS"), ("net*", "COLLAPSE"))

RUNS = (
    Run(
        name="elu_on_its_floor",
        kind="mlp",
        why="biases of -9 keep an ELU at -1",
        build=lambda: with_(dense(12, 32, 32, 3, act=nn.ELU), _floor),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-3),
        steps=40,
        labels=(Label(unit="net/act1", flag="SATURATED"),),
        allowed=_BESIDE,
        cure={"build": lambda: dense(12, 32, 32, 3, act=nn.ELU), "optimizers": adam(5e-3)},
    ),
    Run(
        name="relu6_at_its_ceiling",
        kind="mlp",
        why="biases of 15 keep a ReLU6 at 6",
        build=lambda: with_(dense(12, 32, 32, 3, act=nn.ReLU6), lambda net: net.fc1.bias.add_(15)),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(2e-3),
        steps=40,
        labels=(Label(unit="net/act1", flag="SATURATED"),),
        allowed=_BESIDE,
        cure={
            "build": lambda: with_(
                dense(12, 32, 32, 3, act=nn.ReLU6),
                lambda net: (net.fc0.bias.add_(1), net.fc1.bias.add_(2)),
            ),
            "optimizers": adam(5e-3),
        },
    ),
    Run(
        name="glance_too_cold",
        kind="rnn",
        why="scores are five thousand times too large, and most states are never looked at",
        build=lambda: Glance(5e3),
        data=waves(),
        losses=(entropy,),
        optimizers=adam(1e-3),
        steps=40,
        batch=48,
        labels=(Label(unit="net/weigh", flag="SATURATED"),),
        allowed=_BESIDE,
        cure={"build": Glance, "optimizers": adam(8e-3), "steps": 50},
    ),
    Run(
        name="gated_units_shut",
        kind="gated",
        why="six gated linear units of a hundredth each, one behind the other",
        build=lambda: Gated(6, 4.5),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(1e-3),
        steps=40,
        labels=(Label(unit="net/blocks.0", flag="VANISHING", also=("net/blocks.0.0",)),),
        allowed=_BESIDE,
        cure={"build": lambda: Gated(6, around=True), "optimizers": adam(5e-3)},
    ),
    Run(
        name="part_that_gives_a_constant",
        kind="residual",
        why="a SiLU of -60 is as good as 0, and what follows it hears nothing",
        build=lambda: Residual(60.0),
        data=smooth(),
        losses=(squares,),
        optimizers=adam(4e-3),
        steps=40,
        labels=(Label(unit="net/blocks.1.1", flag="DEAD"),),
        allowed=(*_BESIDE, ("net/blocks.1.0", "LR_LOW")),
        cure={"build": Residual},
    ),
)

"""What the runs are made of: data, losses, optimizers and a few networks."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, Optimizer

from tests.detection.run import Loss

Data = Callable[[Generator], tuple[Tensor, Tensor]]
Optimizers = Callable[[nn.Module], tuple[Optimizer, ...]]


def smooth(width: int = 12, outputs: int = 3, count: int = 256) -> Data:
    """Targets that are smooth functions of normal inputs."""

    def make(random: Generator) -> tuple[Tensor, Tensor]:
        x = torch.randn(count, width, generator=random)
        w = torch.randn(width, outputs, generator=random) / width**0.5
        return x, torch.sin(2 * x @ w) + 0.5 * x @ w.roll(1, 1)

    return make


def blobs(width: int = 12, classes: int = 4, count: int = 256, apart: float = 1.5) -> Data:
    """Classes that are round clouds."""

    def make(random: Generator) -> tuple[Tensor, Tensor]:
        centres = torch.randn(classes, width, generator=random) * apart
        y = torch.arange(count) % classes
        return centres[y] + torch.randn(count, width, generator=random), y

    return make


def pictures(size: int = 8, colours: int = 2, classes: int = 3, count: int = 96) -> Data:
    """Pictures of stripes, of one width and direction a class, under noise."""

    def make(random: Generator) -> tuple[Tensor, Tensor]:
        y = torch.arange(count) % classes
        grid = torch.arange(size).float()
        angle = y.float() * 3.1416 / classes
        wave = (
            grid[None, :, None] * angle.cos()[:, None, None]
            + grid[None, None, :] * angle.sin()[:, None, None]
        )
        shift = torch.rand(count, 1, 1, generator=random) * 6.28
        striped = torch.sin(1.3 * wave + shift)[:, None].repeat(1, colours, 1, 1)
        return striped + 0.4 * torch.randn(striped.shape, generator=random), y

    return make


def words(length: int = 10, known: int = 30, count: int = 128) -> Data:
    """Sentences of word numbers from 1 on; the class tells which half of the words is more used."""

    def make(random: Generator) -> tuple[Tensor, Tensor]:
        y = torch.arange(count) % 2
        half = (known - 1) // 2
        own = torch.randint(0, half, (count, length), generator=random) + 1 + y[:, None] * half
        any_ = torch.randint(1, known, (count, length), generator=random)
        keep = torch.rand(count, length, generator=random) < 0.7
        return torch.where(keep, own, any_), y

    return make


def waves(length: int = 16, width: int = 4, classes: int = 3, count: int = 96) -> Data:
    """Noisy series, of one frequency a class."""

    def make(random: Generator) -> tuple[Tensor, Tensor]:
        y = torch.arange(count) % classes
        time = torch.arange(length).float()[None, :, None]
        phase = torch.rand(count, 1, width, generator=random)
        x = torch.sin((y + 1)[:, None, None] * 0.4 * time + phase)
        return x + 0.2 * torch.randn(x.shape, generator=random), y

    return make


def itself(data: Data) -> Data:
    """The same inputs, as their own targets."""

    def make(random: Generator) -> tuple[Tensor, Tensor]:
        x, _ = data(random)
        return x, x.clone()

    return make


def sines(width: int = 12, hidden: int = 3, count: int = 256) -> Data:
    """Inputs that few hidden numbers explain, as their own targets."""

    def make(random: Generator) -> tuple[Tensor, Tensor]:
        z = torch.randn(count, hidden, generator=random)
        x = torch.tanh(z @ torch.randn(hidden, width, generator=random))
        return x, x.clone()

    return make


def squares(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The mean squared error."""
    return F.mse_loss(net(x).float(), y)


def entropy(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The cross-entropy of logits."""
    return F.cross_entropy(net(x).float(), y)


def times(loss: Loss, factor: float) -> Loss:
    """A loss in another unit."""
    return lambda net, x, y, step: loss(net, x, y, step) * factor


def adam(rate: float, **options: Any) -> Optimizers:
    """One Adam over all that is trainable."""
    return lambda net: (Adam(trainable(net), lr=rate, **options),)


def sgd(rate: float, **options: Any) -> Optimizers:
    """One SGD over all that is trainable."""
    return lambda net: (SGD(trainable(net), lr=rate, **options),)


def trainable(net: nn.Module) -> list[nn.Parameter]:
    """The parameters that ask for a gradient."""
    return [one for one in net.parameters() if one.requires_grad]


def split(net: nn.Module, *starts: str) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters whose names open with one of some words, and the others."""
    named = [(name, one) for name, one in net.named_parameters() if one.requires_grad]
    return (
        [one for name, one in named if name.startswith(starts)],
        [one for name, one in named if not name.startswith(starts)],
    )


def two_rates(kind: type[Optimizer], slow: float, fast: float, *starts: str) -> Optimizers:
    """One optimizer, another rate for the parameters whose names open with some words."""

    def make(net: nn.Module) -> tuple[Optimizer, ...]:
        those, others = split(net, *starts)
        groups = [{"params": those, "lr": slow}, {"params": others, "lr": fast}]
        return (kind(groups, lr=fast),)  # type: ignore[call-arg]

    return make


def chain(**parts: nn.Module) -> nn.Sequential:
    """Modules one after the other, by name."""
    return nn.Sequential(OrderedDict(parts))


def dense(*widths: int, act: Callable[[], nn.Module] = nn.Tanh, bias: bool = True) -> nn.Sequential:
    """Linear layers `fc0`, `act0`, `fc1` and so on, and the last one, `out`."""
    parts: dict[str, nn.Module] = {}
    for index, (wide, next_) in enumerate(pairwise(widths[:-1])):
        parts[f"fc{index}"] = nn.Linear(wide, next_, bias=bias)
        parts[f"act{index}"] = act()
    return chain(**parts, out=nn.Linear(widths[-2], widths[-1]))


def with_(net: nn.Module, change: Callable[[Any], object]) -> nn.Module:
    """Return a network after a change of its weights."""
    with torch.no_grad():
        change(net)
    return net


def each(net: nn.Module, kind: type[nn.Module], change: Callable[[Any], object]) -> nn.Module:
    """Return a network after a change of each of its modules of one kind, but for `out`."""
    return with_(net, lambda whole: [change(one) for one in of_kind(whole, kind)])


def of_kind(net: nn.Module, kind: type[nn.Module]) -> Iterable[nn.Module]:
    """The modules of one kind that are not the last layer."""
    return [one for name, one in net.named_modules() if isinstance(one, kind) and name != "out"]


class Mean(nn.Module):
    """The mean over one axis, or several."""

    def __init__(self, *axes: int) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(self.axes)


class Attend(nn.Module):
    """Self-attention of several heads, its softmax a module of its own."""

    def __init__(self, width: int, heads: int = 2, *, causal: bool = False, cold: float = 1.0):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.weigh = nn.Softmax(-1)
        self.mix = nn.Linear(width, width)
        self.heads, self.causal, self.cold = heads, causal, cold

    def forward(self, x: Tensor) -> Tensor:
        count, length, width = x.shape
        q, k, v = self.qkv(x).view(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5 / self.cold
        if self.causal:
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        return self.mix((self.weigh(scores) @ v).transpose(1, 2).reshape(count, length, width))


class Layer(nn.Module):
    """One block of a transformer, normalised first."""

    def __init__(self, width: int, act: Callable[[], nn.Module] = nn.GELU, **options: Any) -> None:
        super().__init__()
        self.norm1, self.attend = nn.LayerNorm(width), Attend(width, **options)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.act, self.down = nn.Linear(width, 48), act(), nn.Linear(48, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Reader(nn.Module):
    """A transformer that reads words and tells a class."""

    def __init__(self, depth: int = 2, width: int = 16, known: int = 30, **options: Any) -> None:
        super().__init__()
        self.embed = nn.Embedding(known, width)
        self.layers = nn.Sequential(*(Layer(width, **options) for _ in range(depth)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(self.layers(self.embed(x))).mean(1))


def convolve(
    *widths: int, classes: int = 3, act: Callable[[], nn.Module] = nn.ReLU, norm: bool = True
) -> nn.Sequential:
    """Convolutions `conv0`, `norm0`, `act0` and so on, the mean of all places, and `out`."""
    parts: dict[str, nn.Module] = {}
    for index, (wide, next_) in enumerate(pairwise(widths)):
        parts[f"conv{index}"] = nn.Conv2d(wide, next_, 3, padding=1, bias=not norm)
        if norm:
            parts[f"norm{index}"] = nn.BatchNorm2d(next_)
        parts[f"act{index}"] = act()
    return chain(**parts, pool=Mean(2, 3), out=nn.Linear(widths[-1], classes))

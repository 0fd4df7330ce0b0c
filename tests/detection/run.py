"""What a run of the benchmark is: a small training with labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Generator, Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

Loss = Callable[[nn.Module, Tensor, Tensor, int], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One fault that a perfect audit reports."""

    unit: str
    flag: str
    count: int | None = None  # of channels, where it is exact
    also: tuple[str, ...] = ()  # units that localise it as well
    names: tuple[str, ...] = ()  # other flags that name the same fault
    step: int | None = None  # where it first shows, for what has one


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training on the CPU, the same for the same seed."""

    name: str
    kind: str
    why: str
    build: Callable[[], nn.Module | dict[str, nn.Module]]
    data: Callable[[Generator], tuple[Tensor, Tensor]]
    losses: tuple[Loss, ...]  # one for all optimizers, or one for each, in turns
    optimizers: Callable[[nn.Module], tuple[Optimizer, ...]]
    steps: int = 30
    batch: int = 64
    graph: bool = True  # a graph of one node can train it
    micro: int = 1  # batches that make up a step
    clip: float | None = None
    autocast: bool = False
    zeroes: bool = True  # gradients are zeroed before each backward
    schedule: Callable[[Optimizer], LRScheduler] | None = None
    after: Callable[[nn.Module], None] | None = None  # what the loop does after a step
    labels: tuple[Label, ...] = ()
    allowed: tuple[tuple[str, str], ...] = ()  # pattern of units, flag: true, and secondary
    cure: Mapping[str, Any] = field(default_factory=dict)  # what makes a sick run healthy
    groups: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    score: Callable[[nn.Module, Tensor, Tensor], Tensor] | None = None  # falls where it learns
    converged: bool = False  # it begins where others end
    first: tuple[str, ...] = ()  # parameters that multiply the input, for the scale law
    scales: bool = True  # the factor of the scale law changes nothing but the numbers' size
    idle: tuple[str, ...] = ()  # parameters that can't matter, as a bias before a normalisation

    @property
    def is_healthy(self) -> bool:
        """Is nothing wrong with it?"""
        return not self.labels

    def cured(self) -> "Run":
        """Return the same run without its fault."""
        return replace(
            self,
            **{"labels": (), "allowed": (), "cure": {}, "name": f"{self.name}_cured", **self.cure},
        )

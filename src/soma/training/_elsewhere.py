"""The seam to modules that are in another process: a room above fills it.

`Placement` is all that training asks of it, so that what carries the calls can be exchanged.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from torch import Tensor, nn

from soma.core import Node
from soma.training._optimizers import Optimizers


class StandIn(nn.Module):
    """A module that stands here for one elsewhere; its parameters have shapes and no numbers."""

    @abstractmethod
    def answer(self, x: object, *, graph_trains: bool) -> tuple[object, dict[str, object]]:
        """Return `(output, aux)` of the whole filter, run where the module is."""

    @abstractmethod
    def brought_home(self) -> nn.Module:
        """Return a copy of the module, with its numbers."""

    @abstractmethod
    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights and buffers, by name, into the module."""


class Placement(Protocol):
    """What builds, steps and differentiates across processes."""

    def build(self, node: Node, x: object) -> object:
        """Build a node's module where it belongs, leave a stand-in here; return its answer."""

    def begin(self) -> None:
        """Begin a training step."""

    def backward(self, losses: Sequence[Tensor], *, retain_graph: bool) -> None:
        """Run autograd from losses of this step."""

    def clip(self, parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
        """Scale the gradients of this step to a norm of at most `max_norm`; return it as it was."""

    def cleared(self) -> None:
        """Hear that gradients were cleared."""

    def step(self, optimizers: Optimizers, only: "str | Sequence[str] | None") -> None:
        """Step everywhere; the training step is over."""

    def restore(self, weights: "Mapping[str, Mapping[str, Tensor]]") -> None:
        """Give nodes weights, by node and name, building anew what was lost with a worker."""


def at_home(module: nn.Module) -> nn.Module:
    """Return a module with its numbers: itself, or a copy of what it stands for."""
    return module.brought_home() if isinstance(module, StandIn) else module


class Away:
    """A node that answers elsewhere: gives `(output, aux)`."""

    __slots__ = ("graph_trains", "module")

    def __init__(self, module: StandIn, *, graph_trains: bool) -> None:
        self.module = module
        self.graph_trains = graph_trains

    def __call__(self, x: object) -> tuple[object, dict[str, object]]:
        return self.module.answer(x, graph_trains=self.graph_trains)

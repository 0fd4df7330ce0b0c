"""The seam to modules that are in another process: a room above fills it.

`Placement` is all that training asks of it, so that what carries the calls can be exchanged.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from soma.core import Node, NodeId
from soma.health import Measurements, Unit
from soma.training._optimizers import Optimizers

# What an optimizer holds for a weight: by name, whether it moves with the weight, and the value.
Held = Mapping[str, tuple[bool, Any]]


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


class Ear(Protocol):
    """An audit, for those who listen where the modules are."""

    inside: Any  # which submodules are watched, as the audit was told
    channels: Any

    def turn(self) -> tuple[int, bool, int] | None:
        """Return the step under way, whether it is measured whole, and one in how many is."""

    def met(self, node: NodeId, units: Sequence[Unit]) -> None:
        """Know what is listened to of a node, itself first."""

    def heard(self, norm: float, norm_at_step: float, seconds: float) -> None:
        """Know the norm of the gradients elsewhere, as the step finds them, and what it cost."""

    def dropped(self) -> None:
        """Know that gradients were cleared that no optimizer has used."""

    def take(self, measured: Measurements) -> None:
        """Take what was measured in another process since it was last asked."""

    def lost(self, nodes: Sequence[NodeId], where: str) -> None:
        """Know that the process with some nodes is gone."""


class Listening(Protocol):
    """What an audit holds while it listens elsewhere."""

    def fetch(self) -> None:
        """Have the audit take all that was measured so far."""

    def close(self) -> None:
        """Fetch the rest, and leave the modules as they were."""


class Placement(Protocol):
    """What builds, steps and differentiates across processes."""

    def build(self, node: Node, x: object) -> object:
        """Build a node's module where it belongs, leave a stand-in here; return its answer."""

    def begin(self) -> None:
        """Begin a training step."""

    def backward(self, losses: Sequence[Tensor], *, retain_graph: bool) -> list[nn.Parameter]:
        """Run autograd from losses of this step; return the parameters here with a gradient."""

    def clip(self, parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
        """Scale the gradients of this step to a norm of at most `max_norm`; return it as it was."""

    def cleared(self) -> None:
        """Hear that gradients were cleared."""

    def step(self, optimizers: Optimizers, only: "str | Sequence[str] | None") -> None:
        """Step everywhere; the training step is over."""

    def optimizer_states(
        self, optimizers: Mapping[str, Optimizer]
    ) -> Mapping[str, Mapping[nn.Parameter, Held]]:
        """Return what optimizers hold elsewhere for weights, by name of the optimizer."""

    def restore(self, weights: "Mapping[str, Mapping[str, Tensor]]", *, whole: bool) -> None:
        """Give nodes weights, by node and name, building anew what was lost with a worker.

        Args:
            weights: of the nodes that are elsewhere.
            whole: all weights of the graph have got a value, so a torn step is mended.
        """

    def listen(self, ear: Ear) -> Listening:
        """Measure the modules that are elsewhere, for an audit."""


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

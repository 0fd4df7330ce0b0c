"""The optimizers on a worker: made for the steps that a program orders, kept with their moments.

How a program makes its orders is in `_orders.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.optim import Optimizer

from soma.distributed._messages import Place, Step


class Due(NamedTuple):
    """An optimizer that is to step, and its weights."""

    optimizer: Optimizer
    weights: list[Tensor]


class _Made(NamedTuple):
    """An optimizer, and what it was made for."""

    number: int  # of the optimizer in the program
    optimizer: Optimizer
    weights: list[list[Tensor]]  # by group


class HostedOptimizers:
    """Those of one session.

    Args:
        parameter: finds a weight by its node and its name there.
    """

    def __init__(self, parameter: Callable[[Place, str], nn.Parameter]) -> None:
        self._parameter = parameter
        self._made: dict[tuple[int, str], _Made] = {}  # by graph and name
        self._steps: dict[int, tuple[Step, ...]] = {}  # of each graph, as it last ordered
        self._due: dict[int, list[Due]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def due(self, graph: int, steps: tuple[Step, ...] | None) -> list[Due]:
        """Return what a step of a graph is: of given orders, or of those of last time."""
        if steps is not None:
            self._steps[graph] = steps
            self._due.pop(graph, None)
        if graph not in self._due:
            self._due[graph] = [self._found(one) for one in self._steps[graph]]
        return self._due[graph]

    def of(self, step: Step) -> Optimizer:
        """Return the optimizer that a step is of, with the options that its groups have now."""
        return self._found(step).optimizer

    def rebuilt(self, graph: int) -> None:
        """Know that a graph has a new module."""
        self._due.pop(graph, None)

    def forget(self, graph: int) -> None:
        """Drop those of a graph."""
        for key in [one for one in self._made if one[0] == graph]:
            del self._made[key]
        self._steps.pop(graph, None)
        self._due.pop(graph, None)

    def _found(self, step: Step) -> Due:
        weights: list[list[Tensor]] = [
            [self._parameter(*one) for one in group.weights] for group in step.groups
        ]
        key = (step.graph, step.name)
        made = self._made.get(key)
        if made is None or made.number != step.number or not _same(made.weights, weights):
            groups = [
                {**group.options, "params": params}
                for group, params in zip(step.groups, weights, strict=True)
            ]
            optimizer = step.cls(groups, **dict[str, Any](step.defaults))
            made = self._made[key] = _Made(step.number, optimizer, weights)
        for group, wanted in zip(made.optimizer.param_groups, step.groups, strict=True):
            group.update(wanted.options)
        return Due(made.optimizer, [weight for part in weights for weight in part])


def _same(one: Sequence[Sequence[Tensor]], other: Sequence[Sequence[Tensor]]) -> bool:
    return [[*map(id, part)] for part in one] == [[*map(id, part)] for part in other]

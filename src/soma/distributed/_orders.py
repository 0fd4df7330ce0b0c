"""What an optimizer's step is for each worker: the groups that the optimizer made here has."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from inspect import signature
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from torch.optim import LBFGS, Optimizer

from soma.distributed._messages import Group, Step
from soma.distributed._stand_in import RemoteParameter
from soma.errors import NoOptimizer

_COUNT = count()
_NUMBERS: "WeakKeyDictionary[Optimizer, int]" = WeakKeyDictionary()


def by_worker(parameters: Iterable[RemoteParameter]) -> dict[str, list[RemoteParameter]]:
    """Return parameters by the worker that holds them, in their order."""
    found: dict[str, list[RemoteParameter]] = {}
    for one in parameters:
        found.setdefault(one.worker, []).append(one)
    return found


def orders_of(graph: int, optimizers: Mapping[str, Optimizer]) -> dict[str, tuple[Step, ...]]:
    """Return what each worker has to step, for the optimizers of a graph by name.

    Raises:
        NoOptimizer: one that cannot be stepped in parts.
    """
    orders: dict[str, list[Step]] = {}
    for name, optimizer in optimizers.items():
        if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LBFGS):
            raise NoOptimizer(
                f"optimizer `{name}` is a {type(optimizer).__name__}, and nodes of this graph are "
                "on workers, where each steps its own: an optimizer of torch is wanted that needs "
                "no closure, such as Adam."
            )
        by_group = [
            by_worker(one for one in group["params"] if isinstance(one, RemoteParameter))
            for group in optimizer.param_groups
        ]
        for worker in dict.fromkeys(worker for held in by_group for worker in held):
            groups = tuple(
                Group(
                    {key: value for key, value in group.items() if key != "params"},
                    tuple((one.place, one.local_name) for one in held[worker]),
                )
                for group, held in zip(optimizer.param_groups, by_group, strict=True)
                if worker in held
            )
            step = Step(
                graph, name, number_of(optimizer), type(optimizer), _settings(optimizer), groups
            )
            orders.setdefault(worker, []).append(step)
    return {worker: tuple(steps) for worker, steps in orders.items()}


def number_of(optimizer: Optimizer) -> int:
    """Return a number that no other optimizer of this process has had."""
    if optimizer not in _NUMBERS:
        _NUMBERS[optimizer] = next(_COUNT)
    return _NUMBERS[optimizer]


def _settings(optimizer: Optimizer) -> dict[str, object]:
    """Return the defaults that the optimizer's constructor takes; some classes add their own."""
    cls: Any = type(optimizer)
    taken = _taken(cls)
    return {name: value for name, value in optimizer.defaults.items() if name in taken}


@lru_cache
def _taken(cls: type[Optimizer]) -> frozenset[str]:
    return frozenset(signature(cls).parameters)

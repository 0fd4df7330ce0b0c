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


class Orders:
    """The steps of one graph, made anew only where something has changed since the last one.

    Args:
        graph: what workers call it.
    """

    def __init__(self, graph: int) -> None:
        self.graph = graph
        self._facts: object = None
        self._made: dict[str, tuple[Step, ...]] = {}
        self._parameters: list[object] = []  # kept, so that no other one gets an `id` of theirs
        self._sent: dict[str, tuple[object, tuple[Step, ...]]] = {}

    def of(self, optimizers: Mapping[str, Optimizer]) -> dict[str, tuple[Step, ...]]:
        """Return what each worker has to step, for optimizers by name.

        Raises:
            NoOptimizer: one that cannot be stepped in parts.
        """
        facts = _facts(optimizers)
        if facts is None or facts != self._facts:
            self._made = orders_of(self.graph, optimizers)
            self._facts = facts
            self._parameters = [
                list(group["params"]) for one in optimizers.values() for group in one.param_groups
            ]
        return dict(self._made)

    def to_send(
        self, worker: str, session: object, steps: tuple[Step, ...]
    ) -> tuple[Step, ...] | None:
        """Return the steps for a worker, or None where it has them from last time."""
        known = self._sent.pop(worker, None)
        return None if known is not None and known[0] is session and known[1] is steps else steps

    def arrived(self, worker: str, session: object, steps: tuple[Step, ...]) -> None:
        """Know that a worker has steps."""
        self._sent[worker] = session, steps


def _facts(optimizers: Mapping[str, Optimizer]) -> object:
    """Return all that steps are made of, to compare; None where that may change in place."""
    options = [
        [
            (key, value)
            for group in optimizer.param_groups
            for key, value in group.items()
            if key != "params"
        ]
        for optimizer in optimizers.values()
        if isinstance(optimizer, Optimizer)
    ]
    plain = all(_is_plain(value) for found in options for _, value in found)
    if not plain or len(options) != len(optimizers):
        return None
    ids = [
        [[*map(id, group["params"])] for group in optimizer.param_groups]
        for optimizer in optimizers.values()
    ]
    return [*optimizers], [*map(number_of, optimizers.values())], ids, options


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


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

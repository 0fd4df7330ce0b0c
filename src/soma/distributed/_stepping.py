"""Has workers take an optimizer's step, all at once; each gets its orders where they are new."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor
from torch.optim import Optimizer

from soma.distributed import _host
from soma.distributed._connection import Connection, Future
from soma.distributed._messages import Heard, Step
from soma.distributed._orders import number_of, orders_of
from soma.errors import SomaError

Orders = Mapping[str, tuple[Step, ...]]  # by worker


class Begun(NamedTuple):
    """A step that a worker is at."""

    worker: str
    steps: tuple[Step, ...]
    connection: Connection
    future: Future


class Stepping:
    """The steps of one graph.

    Args:
        graph: what workers call it.
    """

    def __init__(self, graph: int) -> None:
        self._graph = graph
        self._facts: object = None  # that the orders were made of
        self._orders: dict[str, tuple[Step, ...]] = {}
        self._parameters: list[object] = []  # kept, so that no other one gets an `id` of theirs
        self._known: dict[str, tuple[Connection, tuple[Step, ...]]] = {}  # by worker

    def orders(self, optimizers: Mapping[str, Optimizer]) -> dict[str, tuple[Step, ...]]:
        """Return what each worker has to step, made anew only where something has changed.

        Raises:
            NoOptimizer: one that cannot be stepped in parts.
        """
        facts = _facts(optimizers)
        if facts is None or facts != self._facts:
            self._orders = orders_of(self._graph, optimizers)
            self._facts = facts
            self._parameters = [
                list(group["params"]) for one in optimizers.values() for group in one.param_groups
            ]
        return dict(self._orders)

    def begin(
        self,
        connection: Connection,
        orders: Orders,
        context: int,
        scale: Tensor | None,
        audits: tuple[str, ...],
    ) -> list[Begun]:
        """Begin a step on every worker, with the gradients of a context times `scale`."""
        begun = []
        for worker, steps in orders.items():
            known = self._known.pop(worker, None)
            has_them = known is not None and known[0] is connection and known[1] is steps
            given = (context, scale, audits, self._graph, None if has_them else steps)
            future = connection.begin(worker, _host.step, *given)
            begun.append(Begun(worker, steps, connection, future))
        return begun

    def finish(self, begun: Sequence[Begun]) -> list[dict[str, Heard]]:
        """Come back when no worker is at its step any more, whatever became of it.

        Return what audits have heard, for each worker.
        """
        answers, errors = [], []
        for one in begun:
            try:
                answers.append(one.connection.result(one.future, one.worker))
                self._known[one.worker] = one.connection, one.steps
            except SomaError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return answers


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

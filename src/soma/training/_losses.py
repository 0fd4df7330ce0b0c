"""What a fit minimises: one loss for each leaf that has one.

A loss that is given comes first, then the leaf's own `compute_loss`; else the targets decide,
in `_default_loss.py`.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, cast

from torch import Tensor, stack

from soma.core import Filter, NodeId, Topology
from soma.draw import printable
from soma.engine import Extras, describe, row_count
from soma.errors import InvalidInput, InvalidOutput
from soma.training._batches import Batch
from soma.training._default_loss import default_loss
from soma.training._filter import Aux, DifferentiableFilter
from soma.training._targets import Targets, check_leaves

LossFunction = Callable[[object, object, Aux], object]


@dataclass(frozen=True, slots=True)
class Asked:
    """The losses that a user gave: one for every leaf, or `one_by_one`."""

    by_leaf: Mapping[NodeId, Callable[..., object]]
    one_by_one: bool


@dataclass(frozen=True, slots=True)
class LeafLoss:
    """The loss of one leaf, called with its output, its targets and its aux."""

    name: str
    function: LossFunction
    has_target: bool


class Losses:
    """The losses of a graph, by leaf."""

    def __init__(self, by_leaf: Mapping[NodeId, LeafLoss], *, several_leaves: bool) -> None:
        self.by_leaf = dict(by_leaf)
        self.several_leaves = several_leaves

    @property
    def names(self) -> dict[NodeId, str]:
        """Which loss each leaf has, in words."""
        return {leaf: one.name for leaf, one in self.by_leaf.items()}

    def __call__(self, output: object, aux: Extras, batch: Batch) -> dict[NodeId, Tensor]:
        """Return the loss of each leaf for the graph's output on one batch."""
        losses = {}
        for leaf, one in self.by_leaf.items():
            out = output[leaf] if self.several_leaves else output  # type: ignore[index]
            y = batch.y.get(leaf)
            if one.has_target:
                _check_rows(leaf, out, y)
            try:
                value = one.function(out, y, cast(Aux, aux.get(leaf, {})))
            except Exception as error:
                error.add_note(
                    f"in the loss of leaf `{leaf}`, {one.name}; its output: {describe(out)}"
                    f"{_place(out)}, its targets: {describe(y)}{_place(y)}"
                )
                raise
            if not isinstance(value, Tensor) or value.numel() != 1:
                raise InvalidOutput(
                    f"the loss of leaf `{leaf}`, {one.name}, gave {describe(value)}; a tensor of "
                    "one number is wanted. Reduce it, for instance with `.mean()`."
                )
            losses[leaf] = value
        return losses


def asked_losses(given: object, leaves: tuple[NodeId, ...]) -> Asked:
    """Read `loss`: None, a callable, or a dict of callables by leaf."""
    if given is None:
        return Asked({}, one_by_one=False)
    if isinstance(given, Mapping):
        check_leaves(given, leaves, "`loss`")
    by_leaf: dict[NodeId, Callable[..., object]] = (
        dict(given) if isinstance(given, Mapping) else dict.fromkeys(leaves, given)  # type: ignore[arg-type]  # looked at next
    )
    for one in by_leaf.values():
        if isinstance(one, type) or not callable(one):
            hint = f" Write `{one.__name__}()`." if isinstance(one, type) else ""
            raise TypeError(
                f"`loss` is {one!r}; a callable `(out, y) -> loss`, or a dict of them by leaf, "
                f"is wanted.{hint}"
            )
    return Asked(by_leaf, one_by_one=isinstance(given, Mapping))


def chosen_losses(
    topology: Topology, asked: Asked, targets: Targets, batch: Batch, output: object
) -> Losses:
    """Return the losses that fit the targets.

    Args:
        asked: what the user asked for, as `asked_losses` returned it.
        targets: all that are known, to tell classes by.
        batch: some rows of them, and
        output: what the graph gave for these rows.
    """
    leaves = topology.wiring().leaves
    several = len(leaves) > 1
    chosen = {}
    for leaf in leaves:
        filter = topology.nodes[leaf].filter
        has_target = leaf in targets
        if leaf in asked.by_leaf and (has_target or asked.one_by_one):
            name, function = _given(asked.by_leaf[leaf])
            chosen[leaf] = LeafLoss(name, function, has_target)
        elif computes_loss(filter):
            name = f"compute_loss of {type(filter).__name__}"
            chosen[leaf] = LeafLoss(name, filter.compute_loss, has_target)
        elif has_target:
            out = output[leaf] if several else output  # type: ignore[index]
            _check_rows(leaf, out, batch.y[leaf])
            name, function = default_loss(leaf, out, batch.y[leaf], targets[leaf])
            chosen[leaf] = LeafLoss(name, function, has_target)
    return Losses(chosen, several_leaves=several)


def computes_loss(filter: Filter) -> TypeGuard[DifferentiableFilter]:
    """Whether a filter says itself what its loss is."""
    return (
        isinstance(filter, DifferentiableFilter)
        and type(filter).compute_loss is not DifferentiableFilter.compute_loss
    )


def summed(losses: Iterable[Tensor]) -> Tensor:
    """Return the sum; a single loss comes back as it is."""
    first, *others = losses
    for one in others:
        first = first + one
    return first


class Means:
    """Means of losses over rows, by leaf.

    Numbers stay on their device and are read many at a time: each read waits for it.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.seen = False
        self._sums: dict[NodeId, float] = {}
        self._unread: list[tuple[int, Mapping[NodeId, Tensor]]] = []

    def add(self, losses: Mapping[NodeId, Tensor], rows: int) -> None:
        """Count the losses of one batch."""
        self.seen = True
        self._unread.append((rows, losses))
        if len(self._unread) == 512:
            self._read()

    def by_leaf(self) -> dict[NodeId, float]:
        """Return the mean of each leaf's loss so far."""
        self._read()
        return {leaf: total / self.rows for leaf, total in self._sums.items()}

    def _read(self) -> None:
        for leaf in self._unread[0][1] if self._unread else ():
            values = stack([losses[leaf].reshape(()) for _, losses in self._unread]).tolist()
            weighted = (rows * value for (rows, _), value in zip(self._unread, values, strict=True))
            self._sums[leaf] = self._sums.get(leaf, 0.0) + sum(weighted)
        self.rows += sum(rows for rows, _ in self._unread)
        self._unread.clear()


def _given(function: Callable[..., object]) -> tuple[str, LossFunction]:
    name = printable(getattr(function, "__name__", type(function).__name__))
    return f"{name} (given)", _Given(function)


class _Given:
    """A user's loss; what torch only warns of at the first call is an error."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.called = False

    def __call__(self, out: object, y: object, aux: Aux) -> object:
        if self.called:
            return self.function(out, y)
        self.called = True
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Using a target size")
            try:
                return self.function(out, y)
            except UserWarning as broadcast:
                raise InvalidInput(
                    f"the output is {describe(out)} and the targets are {describe(y)}: torch would "
                    "broadcast the two and compare every row with every other. Give targets of the "
                    "output's shape, for instance `y[:, None]`."
                ) from broadcast


def _check_rows(leaf: NodeId, out: object, y: object) -> None:
    if y is None:
        raise InvalidInput(
            f"there are no targets for leaf `{leaf}` in this data, and its loss needs them. Give "
            "them as in training."
        )
    rows, wanted = row_count(out), row_count(y)
    if rows is not None and wanted is not None and rows != wanted:
        raise InvalidOutput(
            f"leaf `{leaf}` gave {rows} rows for a batch of {wanted}: its output is "
            f"{describe(out)}, its targets {describe(y)}. One row of output for each row of the "
            "batch is wanted."
        )


def _place(value: object) -> str:
    return f" on {value.device}" if isinstance(value, Tensor) and value.is_cuda else ""

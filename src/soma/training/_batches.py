"""The data of a fit, cut into batches: rows in memory, or what a loader gives.

A `Batch` pairs the input of the graph with the targets of its leaves. `_losses.py` compares
the two.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Generator, Tensor
from torch.utils.data import Dataset

from soma.core import Inputs
from soma.engine import describe, generators_kept, row_count
from soma.errors import InvalidInput
from soma.training._prefix import Prefix
from soma.training._rows import Index, take
from soma.training._targets import Targets


class Batch(NamedTuple):
    """The input of one step, and the targets of the leaves that have some."""

    x: object  # a `Prefix`, or what a loader gives
    y: Targets
    rows: int


class Batches(Protocol):
    """What an epoch passes over."""

    @property
    def steps(self) -> int | None:
        """How many batches an epoch has, where that is known."""

    @property
    def targets(self) -> Targets:
        """The targets that are known before the first step."""

    def first(self) -> Batch:
        """Return the first batch, drawing nothing."""

    def in_order(self) -> Iterator[Batch]:
        """Give every batch once, in the order of the data."""

    def shuffled(self, generator: Generator | None) -> Iterator[Batch]:
        """Give every row once, in a new random order."""


class Rows:
    """Data in memory: `batch_size` rows a batch, the last one smaller."""

    def __init__(self, x: Prefix, targets: Targets, batch_size: int) -> None:
        self.x = x
        self.targets = targets
        self.batch_size = batch_size
        self.rows = len(x)
        for leaf, target in targets.items():
            if not isinstance(target, tuple) and row_count(target) != self.rows:
                raise InvalidInput(
                    f"the targets of `{leaf}` are {describe(target)}, and there are {self.rows} "
                    "rows before the first module. One target for each row is wanted."
                )

    @property
    def steps(self) -> int:
        """How many batches an epoch has."""
        return -(-self.rows // self.batch_size)

    def first(self) -> Batch:
        """Return the first rows."""
        return self._batch(slice(0, self.batch_size), min(self.batch_size, self.rows))

    def in_order(self) -> Iterator[Batch]:
        """Give the rows as they stand."""
        for start in range(0, self.rows, self.batch_size):
            end = min(start + self.batch_size, self.rows)
            yield self._batch(slice(start, end), end - start)

    def shuffled(self, generator: Generator | None) -> Iterator[Batch]:
        """Give the rows in the order of one `torch.randperm`."""
        order = torch.randperm(self.rows, generator=generator)
        for start in range(0, self.rows, self.batch_size):
            positions = order[start : start + self.batch_size]
            yield self._batch(positions, len(positions))

    def _batch(self, index: Index, rows: int) -> Batch:
        # Leaves that share their targets share the rows of them too.
        parts = {id(target): target for target in self.targets.values()}
        taken = {key: take(target, index) for key, target in parts.items()}
        y = {leaf: taken[id(target)] for leaf, target in self.targets.items()}
        return Batch(self.x[index], y, rows)


class Loaded:
    """Batches that a loader makes; it shuffles them itself, or not."""

    def __init__(
        self, loader: Iterable[object], first: object, convert: Callable[[object], Targets]
    ) -> None:
        self.loader = loader
        self.convert = convert
        self._first = self._batch(first)

    @property
    def steps(self) -> int | None:
        """How many batches the loader says it has."""
        try:
            return len(self.loader)  # type: ignore[arg-type]
        except TypeError:
            return None

    @property
    def targets(self) -> Targets:
        """The targets of the first batch."""
        return self._first.y

    def first(self) -> Batch:
        """Return the first batch, as it was given once before."""
        return self._first

    def in_order(self) -> Iterator[Batch]:
        """Give what the loader gives."""
        return map(self._batch, self.loader)

    def shuffled(self, generator: Generator | None) -> Iterator[Batch]:
        """Give what the loader gives: its order is its own."""
        return self.in_order()

    def _batch(self, batch: object) -> Batch:
        x, y = parts_of(batch)
        return Batch(x, self.convert(y), row_count(x) or row_count(y) or 1)


def is_loader(x: object) -> bool:
    """Whether `x` gives batches, rather than being the data itself.

    Raises:
        InvalidInput: it gives its batches only once, or samples in place of batches.
    """
    if isinstance(x, Dataset):
        raise InvalidInput(
            f"`{type(x).__name__}` is a dataset, which gives samples and not batches. Pass "
            "`torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True)`."
        )
    if (
        isinstance(x, Mapping | list | tuple | str | bytes)
        or hasattr(x, "shape")
        or not hasattr(x, "__iter__")
    ):
        return False
    if hasattr(x, "__next__"):
        raise InvalidInput(
            f"a `{type(x).__name__}` gives its batches only once, and every epoch passes over "
            "them. Give a DataLoader, or the data itself."
        )
    return True


def parts_of(batch: object) -> tuple[object, object]:
    """Return the `(x, y)` of one batch of a loader; y is None where it gives x alone."""
    if not isinstance(batch, tuple | list) or (
        isinstance(batch, list) and batch and isinstance(batch[0], int | float)
    ):
        return batch, None
    if len(batch) == 1:
        return batch[0], None
    if len(batch) != 2:
        raise InvalidInput(
            f"the loader gave {describe(batch)} for a batch; `(x, y)` or x alone is wanted. "
            "Several inputs go in as `(soma.Inputs(root=…, other=…), y)`."
        )
    return batch[0], batch[1]


def first_of(loader: Iterable[object]) -> object:
    """Return the first batch, leaving every generator that the loader draws from as it is.

    Raises:
        InvalidInput: there is none.
    """
    with _nothing_drawn(loader):
        for batch in loader:
            return batch
    raise InvalidInput(
        f"the `{type(loader).__name__}` gave no batches. Is its dataset empty, or smaller than "
        "one batch with `drop_last=True`?"
    )


def gathered(loader: Iterable[object]) -> tuple[object, object]:
    """Return all that a loader gives in one pass, as one x and one y in memory."""
    with _nothing_drawn(loader):
        parts = [parts_of(batch) for batch in loader]
    if not parts:
        first_of(loader)
    return _joined([x for x, _ in parts]), _joined([y for _, y in parts])


@contextmanager
def _nothing_drawn(loader: object) -> Iterator[None]:
    parts = [loader, *(getattr(loader, name, None) for name in ("sampler", "batch_sampler"))]
    own = [getattr(part, "generator", None) for part in parts]
    states = [(one, one.get_state()) for one in own if isinstance(one, Generator)]
    with generators_kept():
        try:
            yield
        finally:
            for generator, state in states:
                generator.set_state(state)


def _joined(parts: list[object]) -> object:
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, Tensor):
        return torch.cat(parts)  # type: ignore[arg-type]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)  # type: ignore[arg-type]
    if isinstance(first, Mapping):
        whole = {key: _joined([part[key] for part in parts]) for key in first}  # type: ignore[index]
        return Inputs(whole) if isinstance(first, Inputs) else whole
    if isinstance(first, list):
        return list(chain.from_iterable(parts))  # type: ignore[arg-type]
    if isinstance(first, tuple):
        return tuple(_joined(list(same)) for same in zip(*parts, strict=True))
    raise InvalidInput(
        f"a filter of this graph learns from all the data at once, and batches of "
        f"{describe(first)} cannot be joined. Give tensors, arrays or lists, or fit on the data "
        "itself."
    )

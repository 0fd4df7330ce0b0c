"""A data set as `Graph.fit` gets it, in memory or as a loader, on its way to batches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, cast

from soma.core import NodeId
from soma.engine import check_rows, describe, row_count
from soma.errors import InvalidInput
from soma.training._batches import Batches, Loaded, Rows, first_of, gathered, is_loader, parts_of
from soma.training._prefix import Prefix
from soma.training._rows import take
from soma.training._targets import Addressees, check_leaves
from soma.training._trainer import Trainer


@dataclass(slots=True)
class Data:
    """Inputs and targets; a loader gives both."""

    x: object
    y: object
    is_loader: bool
    prefix: Prefix | None = None  # what the nodes before the first module gave for `x`
    _first: object = None  # the first batch of a loader

    @classmethod
    def checked(cls, x: object, y: object, leaves: tuple[NodeId, ...]) -> Self:
        """Return the data, if x and y go together.

        Raises:
            InvalidInput: they do not, or there is nothing in them.
        """
        if is_loader(x):
            if y is not None:
                raise InvalidInput(
                    f"x is a `{type(x).__name__}`, which gives the targets with each batch, and y "
                    f"is {describe(y)}. Leave y out, and let the loader give `(x, y)`."
                )
            return cls(x, None, is_loader=True)
        if isinstance(y, tuple) and y and isinstance(y[0], int | float):
            y = list(y)  # a row of numbers, not several targets
        check_rows(x, y)
        if isinstance(y, Mapping):
            check_leaves(y, leaves, "`y`")
        return cls(x, y, is_loader=False)

    @classmethod
    def for_validation(cls, given: object, leaves: tuple[NodeId, ...]) -> Self | None:
        """Return the data of `validation=(x, y)` or `validation=loader`."""
        if given is None:
            return None
        if isinstance(given, tuple | list):
            if len(given) == 2:
                return cls.checked(given[0], given[1], leaves)
        elif is_loader(given):
            return cls.checked(given, None, leaves)
        raise InvalidInput(
            f"`validation` is {describe(given)}; a pair `(x, y)` or a DataLoader is wanted."
        )

    def whole(self) -> tuple[object, object]:
        """Return all of x and y; what a loader gives is joined."""
        return gathered(self._loader()) if self.is_loader else (self.x, self.y)

    def sample(self, rows: int) -> tuple[object, Prefix | None]:
        """Return the first rows of x, or the first batch of a loader, and what is known of them.

        That is what the nodes before the first module gave; None where they have not run, or
        gave what has no rows to count.
        """
        if self.is_loader:
            return parts_of(self._first_batch())[0], None
        if row_count(self.x) is None:
            return self.x, self.prefix
        first = slice(0, rows)
        known = self.prefix
        if known is not None:
            counts = {row_count(value) for value in known.values.values()}
            known = known[first] if len(counts) == 1 and None not in counts else None
        return take(self.x, first), known

    def run_prefix(self, trainer: Trainer) -> None:
        """Run what comes before the first module, unless that happens batch by batch."""
        if not self.is_loader:
            self.prefix = trainer.prefix(self.x)

    def batches(self, addressees: Addressees, batch_size: int) -> Batches:
        """Cut the data, with the targets of each leaf."""
        if self.prefix is not None:
            return Rows(self.prefix, addressees.targets(self.y), batch_size)
        return Loaded(self._loader(), self._first_batch(), addressees.targets)

    def _loader(self) -> Iterable[object]:
        return cast(Iterable[object], self.x)

    def _first_batch(self) -> object:
        if self._first is None:
            self._first = first_of(self._loader())
        return self._first

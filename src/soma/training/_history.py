"""What a training was like, epoch by epoch: `Graph.history`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from soma.core import NodeId

_MOST_ROWS = 12  # a longer table leaves out its middle


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """One pass over the data; losses are means over its rows.

    `losses` and `validation_losses` hold the parts by leaf, `loss` and `validation_loss` their
    sums; without validation the latter are None.
    """

    epoch: int  # from 1
    loss: float
    validation_loss: float | None = None
    losses: Mapping[NodeId, float] = field(default_factory=dict)
    validation_losses: Mapping[NodeId, float] | None = None
    learning_rate: float
    seconds: float


class History(Sequence[EpochRecord]):
    """The epochs of one `Graph.fit`, the last one at `history[-1]`.

    `losses` says for each leaf which loss was minimised there.

    >>> history = History({"dense": "mean squared error (float targets)"})
    >>> history.append(EpochRecord(epoch=1, loss=0.25, learning_rate=0.001, seconds=1.5))
    >>> print(history)
    dense: mean squared error (float targets)
    epoch     loss     rate  seconds
        1     0.25    0.001     1.50
    """

    def __init__(self, losses: Mapping[NodeId, str] | None = None) -> None:
        self.losses: dict[NodeId, str] = dict(losses or {})
        self._records: list[EpochRecord] = []

    def append(self, record: EpochRecord) -> None:
        """Add the epoch that has just ended."""
        self._records.append(record)

    @overload
    def __getitem__(self, index: int) -> EpochRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[EpochRecord]: ...
    def __getitem__(self, index: int | slice) -> EpochRecord | list[EpochRecord]:
        return self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __str__(self) -> str:
        told = [f"{leaf}: {name}" for leaf, name in self.losses.items()]
        if not self._records:
            return "\n".join([*told, "no epochs"])
        rows = [_header(self._records[0]), *map(_cells, self._records)]
        widths = [max(7, *map(len, column)) for column in zip(*rows, strict=True)]
        widths[0] = max(5, *(len(row[0]) for row in rows))
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        if len(lines) > _MOST_ROWS + 1:
            half = _MOST_ROWS // 2
            lines[half + 1 : -half] = ["…".rjust(widths[0])]
        return "\n".join([*told, *lines])

    __repr__ = __str__


def _header(record: EpochRecord) -> list[str]:
    judged = ["validation"] if record.validation_loss is not None else []
    return ["epoch", "loss", *judged, "rate", "seconds"]


def _cells(record: EpochRecord) -> list[str]:
    judged = [f"{record.validation_loss:.4g}"] if record.validation_loss is not None else []
    return [
        str(record.epoch),
        f"{record.loss:.4g}",
        *judged,
        f"{record.learning_rate:.3g}",
        f"{record.seconds:.2f}",
    ]

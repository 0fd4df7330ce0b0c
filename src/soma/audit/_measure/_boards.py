"""`Boards`: buffers on devices for numbers, which come to Python in one transfer for each.

On a CPU a number is read at once, since nothing waits for it there; on any other device it
is written into one preallocated tensor, and `read` brings all of them over together.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Row:
    """Some numbers of one tensor, at hand or still on their device."""

    __slots__ = ("_size", "_values")

    def __init__(self, values: Sequence[float] | None, size: int = 0) -> None:
        self._values = values
        self._size = size

    @property
    def values(self) -> Sequence[float]:
        """The numbers; NaN where they were never read."""
        return (math.nan,) * self._size if self._values is None else self._values

    def fill(self, values: Sequence[float]) -> None:
        """Put in the numbers as they arrive."""
        self._values = values


class Board:
    """A buffer on one device: rows of numbers, one after the other."""

    def __init__(self, device: torch.device) -> None:
        # Apple's devices have no 64-bit numbers.
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self._numbers = torch.zeros(1 << 14, dtype=dtype, device=device)
        self._used = 0
        self._waiting: list[tuple[Row, int, int]] = []

    def put(self, numbers: Tensor) -> Row:
        """Write a row."""
        end = self._used + numbers.numel()
        while end > self._numbers.numel():
            self._numbers = torch.cat([self._numbers, torch.zeros_like(self._numbers)])
        self._numbers[self._used : end] = numbers
        row = Row(None, numbers.numel())
        self._waiting.append((row, self._used, end))
        self._used = end
        return row

    def read(self) -> None:
        """Bring all rows over, in one transfer."""
        if self._waiting:
            values = self._numbers[: self._used].tolist()
            for row, begin, end in self._waiting:
                row.fill(values[begin:end])
            self._waiting.clear()
            self._used = 0

    @property
    def is_waiting(self) -> bool:
        """Whether any row has not been read."""
        return bool(self._waiting)


class Boards:
    """A board for each device of the tensors that were measured."""

    def __init__(self) -> None:
        self._by_device: dict[torch.device, Board] = {}

    def put(self, numbers: Tensor) -> Row:
        """Take a row of numbers; on a CPU they are read at once."""
        device = numbers.device
        if device.type == "cpu":
            return Row(numbers.tolist())
        board = self._by_device.get(device)
        if board is None:
            board = self._by_device[device] = Board(device)
        return board.put(numbers)

    def put_all(self, numbers: Sequence[Tensor]) -> Row:
        """Take 0-d tensors of one device as a row."""
        wide = torch.float32 if numbers[0].device.type == "mps" else torch.float64
        return self.put(torch.stack([one.to(wide) for one in numbers]))

    def read(self) -> None:
        """Bring the rows of all devices over."""
        for board in self._by_device.values():
            board.read()

    @property
    def is_waiting(self) -> bool:
        """Whether any row is still on its device."""
        return any(board.is_waiting for board in self._by_device.values())

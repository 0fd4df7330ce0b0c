"""`RowNorms`: norms of long rows of numbers on a CPU, in pieces that stay in its cache.

The fast dot product of torch does the work. Where squares could overflow or vanish, the numbers
are scaled first.
"""

import math
from collections.abc import Iterable
from threading import local

import torch
from torch import Tensor

PIECE = 1 << 18  # elements
# Squares of float32 numbers, and sums of them, are exact enough between these.
SMALL, LARGE = 1e-15, 1e15


class RowNorms:
    """Takes norms of rows; one for each audit, for its scratch memory."""

    def __init__(self) -> None:
        self._local = local()  # a backward may run on several threads

    def norm(self, row: Tensor) -> tuple[float, float]:
        """Return norm and largest absolute value of a row of numbers on a CPU."""
        squares, largest = 0.0, 0.0
        for piece in torch.split(row, PIECE) if row.numel() > PIECE else (row,):
            low, high = ends(piece)
            top = max(-low, high)
            if not math.isfinite(top):
                top = math.nan if piece.isnan().any() else math.inf
                return top, top
            largest = max(largest, top)
            squares += self.squares(piece, top)
        return math.sqrt(squares), largest

    def change(self, before: Tensor, after: Tensor) -> tuple[float, float]:
        """Return norm and largest absolute value of a difference of rows on a CPU."""
        squares, largest = 0.0, 0.0
        for old, new in _pieces(before, after):
            scratch = self.scratch(new)
            torch.sub(new, old, out=scratch)
            found = scratch.dot(scratch).item()
            if not SMALL**2 < found < LARGE**2:
                norm, top = self.norm(scratch)
                if not math.isfinite(norm):
                    return norm, top
                found, largest = norm**2, max(largest, top)
            squares += found
        norm = math.sqrt(squares)
        return norm, largest or norm

    def copy(self, source: Tensor, target: Tensor) -> float:
        """Copy a row of numbers on a CPU; return its norm, taken while it is in the cache."""
        squares = 0.0
        for old, new in _pieces(source, target):
            new.copy_(old)
            squares += new.dot(new).item()
        if not SMALL**2 < squares < LARGE**2:
            return self.norm(source)[0]
        return math.sqrt(squares)

    def scratch(self, like: Tensor, count: int | None = None) -> Tensor:
        """Return memory for as many elements, or for so many; what it held before is lost."""
        kept: dict[torch.dtype, Tensor] = self._local.__dict__.setdefault("kept", {})
        found = kept.get(like.dtype)
        if found is None:
            found = kept[like.dtype] = torch.empty(PIECE, dtype=like.dtype)
        return found[: like.numel() if count is None else count]

    def squares(self, piece: Tensor, top: float) -> float:
        """Return the sum of squares of a piece whose largest absolute value is `top`."""
        if SMALL < top < LARGE or top == 0.0:
            return piece.dot(piece).item()
        scaled = torch.div(piece, top, out=self.scratch(piece))
        return scaled.dot(scaled).item() * top * top

    def squares_in_place(self, scratch: Tensor, top: float) -> float:
        """As `squares`, of what lies in the scratch memory itself."""
        if SMALL < top < LARGE or top == 0.0:
            return scratch.dot(scratch).item()
        scratch.div_(top)
        return scratch.dot(scratch).item() * top * top


def ends(row: Tensor) -> tuple[float, float]:
    """Return the smallest and the largest number; NaN for both where any is."""
    low, high = torch.aminmax(row)
    return low.item(), high.item()


def _pieces(one: Tensor, other: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
    if one.numel() <= PIECE:
        return ((one, other),)
    return zip(torch.split(one, PIECE), torch.split(other, PIECE), strict=True)

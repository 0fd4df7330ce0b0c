"""Linear CKA, debiased: the similarity of two groups of channels, over pooled rows.

Two groups that say the same up to rotation and scale give 1, unrelated ones about 0, whatever
the number of channels and of rows.
"""

from collections import deque

import torch
from torch import Tensor

MOST_ROWS = 512


class Pool:
    """The latest rows of one unit's output, at most `MOST_ROWS` of them."""

    def __init__(self) -> None:
        self._parts: deque[Tensor] = deque()
        self._rows = 0

    def add(self, rows: Tensor) -> None:
        """Keep rows; the oldest go."""
        self._parts.append(rows)
        self._rows += len(rows)
        while self._rows - len(self._parts[0]) >= MOST_ROWS:
            self._rows -= len(self._parts.popleft())

    def rows(self) -> Tensor | None:
        """Return the rows kept, or None where channels have come and gone between calls."""
        if len({part.shape[1] for part in self._parts}) != 1:
            return None
        return torch.cat(list(self._parts))[-MOST_ROWS:]


def spread_rows(x: Tensor, axis: int) -> Tensor:
    """Return a copy of at most `MOST_ROWS` rows of channels, evenly spread over an output."""
    rows = x.movedim(axis, -1).flatten(0, -2)
    every = -(-len(rows) // MOST_ROWS)
    return rows[::every].clone()


def debiased_cka(x_NP: Tensor, y_NQ: Tensor) -> Tensor:
    """Return the debiased linear CKA of two sets of columns over the same rows."""
    x_NP, y_NQ = _centred(x_NP), _centred(y_NQ)
    return _product(x_NP, y_NQ) / (_product(x_NP, x_NP) * _product(y_NQ, y_NQ)).sqrt()


def _centred(x_NP: Tensor) -> Tensor:
    x_NP = x_NP if x_NP.device.type == "mps" else x_NP.double()
    x_NP = x_NP - x_NP.mean(0)
    scale = x_NP.abs().max()  # CKA does not depend on it; squares of squares may overflow
    return x_NP / torch.where(scale > 0, scale, 1)


def _product(x_NP: Tensor, y_NQ: Tensor) -> Tensor:
    """Return the debiased dot product of the two Gram matrices, through the smaller side."""
    n = len(x_NP)
    if x_NP.shape[1] * y_NQ.shape[1] <= n * n:
        dot = (x_NP.T @ y_NQ).square().sum()
    else:
        dot = ((x_NP @ x_NP.T) * (y_NQ @ y_NQ.T)).sum()
    squares_x, squares_y = x_NP.square().sum(1), y_NQ.square().sum(1)
    return (
        dot
        - n / (n - 2) * (squares_x @ squares_y)
        + squares_x.sum() * squares_y.sum() / ((n - 1) * (n - 2))
    )

"""`Moves`: what a step changes in large parameters on a CPU, told by a sample where that will do.

A pass over millions of numbers costs as much as the optimizer's own. Blocks spread evenly over
the parameter say the same, once several steps in which all of it was looked at have shown that
they do; one step in sixteen looks at all of it again, and at the first doubt every step does.
"""

import math

import torch
from torch import Tensor

from soma.audit._measures import Measures

LEAST = 1 << 16  # elements of a parameter that a sample may speak for
_BLOCKS, _BLOCK = 128, 128
_PROOFS = 8  # steps in a row in which the sample must have told the truth
_EVERY = 16  # of steps, one looks at everything
_DOUBT = 0.1  # by which what the sample stands for may differ from one look to the next
# Squares of 32-bit numbers, and sums of them, are exact enough between these.
_SMALL, _LARGE = 1e-30, 1e30


class Move:
    """One large parameter."""

    __slots__ = (
        "before",
        "norm",
        "proofs",
        "sample",
        "steps",
        "times_change",
        "times_norm",
        "was_away",
        "was_compared",
    )

    def __init__(self, number: int) -> None:
        self.steps = number  # so that not all parameters are looked at in the same step
        self.proofs = 0
        self.norm = 0.0  # before the step
        self.before: Tensor | None = None  # all values, in a step that looks at them
        self.sample: Tensor | None = None
        self.times_norm = 0.0  # norm of the parameter over that of its sample
        self.times_change = 0.0
        self.was_away = False  # at the start of a step, from where the one before had started
        self.was_compared = False  # in the latest step


class Moves:
    """All large parameters."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        self._all: dict[int, Move] = {}
        self._rooms: dict[tuple[int, torch.dtype], list[Tensor]] = {}  # memory free for values
        self._scratch: dict[torch.dtype, Tensor] = {}

    def keep(self, index: int, value: Tensor) -> float:
        """Keep what a parameter, given as a row, is before the step; return its norm."""
        move = self._all.get(index)
        if move is None:
            move = self._all[index] = Move(index)
        move.steps += 1
        view = _sample(value)
        move.was_compared = move.before is not None and move.before.shape == value.shape
        if move.was_compared and not move.was_away:
            assert move.before is not None
            move.was_away = not torch.equal(move.before, value)
        if move.proofs >= _PROOFS and move.steps % _EVERY:
            assert move.sample is not None
            norm = _norm(move.sample.copy_(view))
            if norm is not None and norm > 0.0 and move.before is None:
                move.norm = norm * move.times_norm
                return move.norm
            move.proofs = 0
        if move.before is None or move.before.shape != value.shape:
            free = self._rooms.get((value.numel(), value.dtype))
            move.before = free.pop() if free else torch.empty_like(value)
        move.norm = self._measures.copy(value, move.before)
        return move.norm

    def change(self, index: int, value: Tensor) -> tuple[float, float]:
        """Return norm and largest absolute value of what the step has changed, or their like."""
        move = self._all[index]
        view = _sample(value)
        if move.before is None:
            assert move.sample is not None
            found = _norm(torch.sub(view, move.sample, out=self._room(move.sample)))
            if found is None or found == 0.0:
                move.proofs = 0  # has it stopped, or only where the sample lies?
                found = 0.0 if found is not None else math.nan
            return found * move.times_change, found
        norm, largest = self._measures.change(move.before, value)
        self._compare(move, view, norm)
        if move.was_away:  # else it is kept, to see where the next step starts
            self._rooms.setdefault((value.numel(), value.dtype), []).append(move.before)
            move.before = None
        return norm, largest

    def was_away(self, index: int) -> bool:
        """Whether a parameter has ever started a step elsewhere than the one before."""
        return self._all[index].was_away

    def was_compared(self, index: int) -> bool:
        """Whether the latest step has looked at that."""
        return self._all[index].was_compared

    def forget(self) -> None:
        """Free the memory; what samples are worth is still known."""
        self._rooms.clear()
        for move in self._all.values():
            move.before = None

    def _compare(self, move: Move, view: Tensor, change: float) -> None:
        """See what the sample would have said."""
        assert move.before is not None
        if move.sample is None or move.sample.dtype != view.dtype:
            move.sample = torch.empty_like(view, memory_format=torch.contiguous_format)
        old = move.sample.copy_(_sample(move.before))
        norm, found = _norm(old), _norm(torch.sub(view, old, out=self._room(old)))
        if not norm or not found or not math.isfinite(move.norm) or not math.isfinite(change):
            move.proofs = 0
            return
        known, move.times_norm = move.times_norm, move.norm / norm
        is_near = abs(move.times_norm - known) <= _DOUBT * known
        known, move.times_change = move.times_change, change / found
        is_near = is_near and abs(move.times_change - known) <= _DOUBT * known
        move.proofs = move.proofs + 1 if is_near else 0

    def _room(self, like: Tensor) -> Tensor:
        found = self._scratch.get(like.dtype)
        if found is None:
            found = self._scratch[like.dtype] = torch.empty_like(like)
        return found


def _sample(value: Tensor) -> Tensor:
    """Return blocks of a row, evenly spread, as a view."""
    return value.as_strided(
        (_BLOCKS, _BLOCK), (value.numel() // _BLOCKS, 1), value.storage_offset()
    )


def _norm(sample: Tensor) -> float | None:
    """Return the norm of a sample; None where it cannot be told so quickly."""
    row = sample.view(-1)
    squares = row.dot(row).item()
    return math.sqrt(squares) if _SMALL < squares < _LARGE or squares == 0.0 else None

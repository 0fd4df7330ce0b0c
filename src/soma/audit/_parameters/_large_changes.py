"""`LargeChanges`: what a step changes in large parameters on a CPU, by a sample where that will do.

A pass over millions of numbers costs as much as the optimizer's own. Blocks spread evenly over
the parameter say the same, once several steps in which all of it was looked at have shown that
they do; one step in sixteen looks at all of it again, and at the first doubt every step does.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from soma.audit._measure._row_norms import LARGE, SMALL, RowNorms
from soma.audit._measure._tensors import flat

LEAST = 1 << 16  # elements of a parameter that a sample may speak for
_BLOCKS, _BLOCK = 64, 128
_PROOFS = 8  # steps in a row in which the sample must have told the truth
_EVERY = 16  # of steps, one looks at everything
_DOUBT = 0.1  # by which what the sample stands for may differ from one look to the next


class LargeParameter:
    """One large parameter, and how far its sample can be trusted."""

    __slots__ = (
        "_place",
        "before",
        "norm",
        "proofs",
        "sample",
        "steps",
        "times_change",
        "times_norm",
        "view",
        "was_away",
        "was_compared",
    )

    def __init__(self, number: int) -> None:
        self.steps = number  # so that not all parameters are looked at in the same step
        self.proofs = 0
        self.norm = 0.0  # before the step
        self.before: Tensor | None = None  # all values, in a step that looks at them
        self.sample = torch.empty(0)
        self.view = self.sample  # where in the parameter the sample is from
        self.times_norm = 0.0  # norm of the parameter over that of its sample
        self.times_change = 0.0
        self.was_away = False  # at the start of a step, from where the one before had started
        self.was_compared = False  # in the latest step
        self._place: object = None

    def see(self, parameter: Tensor) -> None:
        """Find the sample in memory, which may be other memory than in the step before."""
        place = (parameter.data_ptr(), parameter.dtype, parameter.shape, parameter.stride())
        if place != self._place:
            self.view, self._place = _sample(flat(parameter.detach())), place
            self.sample = torch.empty(self.view.shape, dtype=self.view.dtype)

    def forget(self) -> None:
        """Free the memory."""
        self.before = self._place = None
        self.sample = self.view = torch.empty(0)


class LargeChanges:
    """All large parameters, by their indices."""

    def __init__(self, rows: RowNorms) -> None:
        self._rows = rows
        self._all: dict[int, LargeParameter] = {}
        self._rooms: dict[tuple[int, torch.dtype], list[Tensor]] = {}  # memory free for values

    def keep(self, parameters: Mapping[int, Tensor]) -> list[float]:
        """Keep values of parameters before the step, by their indices; return their norms."""
        sampled: list[LargeParameter] = []
        for index, parameter in parameters.items():
            large = self._all.get(index)
            if large is None:
                large = self._all[index] = LargeParameter(index)
            large.steps += 1
            large.was_compared = False
            if large.before is None and large.proofs >= _PROOFS and large.steps % _EVERY:
                large.see(parameter)
                sampled.append(large)
            else:
                self._keep_whole(large, flat(parameter.detach()))
        if sampled:
            samples = [large.sample for large in sampled]
            torch._foreach_copy_(samples, [large.view for large in sampled])
            for large, norm in zip(sampled, _norms(samples), strict=True):
                large.norm = norm * large.times_norm if norm else 0.0
            for index, parameter in parameters.items():
                large = self._all[index]
                if large.before is None and not large.norm:
                    large.proofs = 0
                    self._keep_whole(large, flat(parameter.detach()))
        return [self._all[index].norm for index in parameters]

    def _keep_whole(self, large: LargeParameter, value: Tensor) -> None:
        """Keep all values, given as a row."""
        large.was_compared = large.before is not None and large.before.shape == value.shape
        if large.was_compared and not large.was_away:
            assert large.before is not None
            large.was_away = not torch.equal(large.before, value)
        if large.before is None or large.before.shape != value.shape:
            free = self._rooms.get((value.numel(), value.dtype))
            large.before = free.pop() if free else torch.empty_like(value)
        large.norm = self._rows.copy(value, large.before)

    def change(self, parameters: Mapping[int, Tensor]) -> list[float]:
        """Return the norms of what the step has changed, by samples where these proved true."""
        sampled = [one for index in parameters if (one := self._all[index]).before is None]
        changes: dict[int, float] = {}
        if sampled:
            samples = [large.sample for large in sampled]
            torch._foreach_sub_(samples, [large.view for large in sampled])
            for large, found in zip(sampled, _norms(samples), strict=True):
                if not found:
                    large.proofs = 0  # has it stopped, or only where the sample lies?
                changes[id(large)] = math.nan if found is None else found * large.times_change
        for index, parameter in parameters.items():
            large = self._all[index]
            if large.before is not None:
                changes[id(large)] = self._whole_change(large, flat(parameter.detach()))
        return [changes[id(self._all[index])] for index in parameters]

    def _whole_change(self, large: LargeParameter, value: Tensor) -> float:
        assert large.before is not None
        norm, _ = self._rows.change(large.before, value)
        self._compare(large, _sample(value), norm)
        if large.was_away:  # else it is kept, to see where the next step starts
            self._rooms.setdefault((value.numel(), value.dtype), []).append(large.before)
            large.before = None
        return norm

    def was_away(self, index: int) -> bool:
        """Whether a parameter has ever started a step elsewhere than the one before."""
        return self._all[index].was_away

    def was_compared(self, index: int) -> bool:
        """Whether the latest step has compared the two starts."""
        return self._all[index].was_compared

    def forget(self) -> None:
        """Free the memory; what samples are worth is still known."""
        self._rooms.clear()
        for large in self._all.values():
            large.forget()

    def _compare(self, large: LargeParameter, view: Tensor, change: float) -> None:
        """Compare what the sample would have told with what is true."""
        assert large.before is not None
        old = _sample(large.before)
        norm, found = _norms([old, torch.sub(view, old)])
        if not norm or not found or not math.isfinite(large.norm) or not math.isfinite(change):
            large.proofs = 0
            return
        large.times_norm, is_near = _again(large.times_norm, large.norm / norm)
        large.times_change, is_too = _again(large.times_change, change / found)
        large.proofs = large.proofs + 1 if is_near and is_too else 0


def _again(known: float, found: float) -> tuple[float, bool]:
    """Return what a sample is worth after one more look, and whether that had been known."""
    if abs(found - known) > _DOUBT * known:
        return found, False
    return known + (found - known) / 4, True  # a single look is as uncertain as the sample itself


def _sample(value: Tensor) -> Tensor:
    """Return blocks of a row, evenly spread, as a view."""
    return value.as_strided(
        (_BLOCKS, _BLOCK), (value.numel() // _BLOCKS, 1), value.storage_offset()
    )


def _norms(samples: list[Tensor]) -> list[float | None]:
    """Return the norms of samples; None where they cannot be told so quickly."""
    norms = [one.item() for one in torch._foreach_norm(samples)]
    return [one if SMALL < one < LARGE or one == 0.0 else None for one in norms]

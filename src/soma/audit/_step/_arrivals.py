"""`Arrivals`: which parameters have got a gradient in the backward that is running.

A hook in a backward runs on cold caches, where each line of it costs many times what it does in
a loop. So the hooks of parameters only note that they were called, and the notes are collected
once: when the backward has ended, or when somebody asks.
"""

import math

import torch
from torch import Tensor

from soma.audit._parameters._weights import Weights
from soma.audit._step._torch_state import running_backward
from soma.audit._step._trace import StepTrace

_NONE = -2  # no backward has this id


class Arrivals:
    """The gradients that have come to parameters and were not measured yet."""

    def __init__(self, weights: Weights) -> None:
        self.step: StepTrace | None = None  # the one under way
        self.fresh: list[int] = []  # parameters whose gradients nobody has measured yet
        self.are_fine = True  # all gradients are finite that were measured during the backward
        self._weights = weights
        self._backward = _NONE
        self._noted: list[int] = []
        self._has_read = False  # some of the step's gradients before the backward was over

    def note(self, index: int, parameter: Tensor) -> bool:
        """Note that a gradient came to a parameter; False: the recorder must look at it now."""
        if running_backward() != self._backward:
            return False
        if len(parameter._post_accumulate_grad_hooks) > 1:
            return False  # somebody else acts on it as soon as it is there
        self._noted.append(index)
        return True

    def came(self, index: int, backward: int, *, is_innermost: bool) -> None:
        """Take a gradient that was looked at; others of the same backward need only be noted."""
        self.fresh.append(index)
        if is_innermost:
            self._backward = backward

    def begin(self, step: StepTrace) -> None:
        """Forget the step before, and add what comes to this one."""
        self.step = step
        self._backward = _NONE
        self._noted.clear()
        self.fresh.clear()
        self.are_fine, self._has_read = True, False

    def end_backward(self) -> None:
        """Collect what was noted, and expect no more of the backward."""
        self.collect()
        self._backward = _NONE

    def collect(self) -> None:
        """Add what was noted to the step under way."""
        if not self._noted:
            return
        # Another thread may be about to note something.
        noted, self._noted = self._noted, []
        if self.step is not None:
            for index in noted:
                self.step.arrived.add(index)
                self._weights.arrived(index)
            self.fresh += noted

    def read(self) -> None:
        """Measure what has come so far, so that it is known whether the backward goes well."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.are_fine = False  # averages are written when the backward is over
            return
        self.collect()
        if self.step is None:
            return
        measured = self.step.norms.after_backward
        known = len(measured)
        self._weights.after_backward(self.fresh, self.step.norms)
        self._has_read |= bool(self.fresh)
        self.fresh.clear()
        norms = [norm for _, row in measured[known:] for norm in row.values]
        self.are_fine = self.are_fine and all(map(math.isfinite, norms))

    def unread(self) -> list[int]:
        """Return which gradients of the step have changed since they were measured."""
        assert self.step is not None
        self.fresh.clear()
        if not self._has_read:
            return sorted(self.step.arrived)
        weights = self._weights.all
        return [
            index
            for index in sorted(self.step.arrived)
            if (gradient := weights[index].parameter.grad) is None
            or (id(gradient), gradient._version) != weights[index].measured
        ]

"""`Arrivals`: the gradients that came in a backward, put down with little ado until it is over.

A hook in a backward runs on cold caches, where each line of it costs many times what it does in
a loop. So the hooks of parameters only say that they were called.
"""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from soma.audit._step._hooks import running_backward

if TYPE_CHECKING:
    from soma.audit._step._recorder import Recorder

_NONE = -2  # no backward has this number


class Arrivals:
    """What has come in the backward under way."""

    def __init__(self, recorder: "Recorder") -> None:
        self.fresh: list[int] = []  # parameters whose gradients nobody has read yet
        self.are_fine = True  # all gradients are finite that were read on the way
        self._recorder = recorder
        self._task = _NONE
        self._pending: list[int] = []
        self._has_read = False  # some of the step's gradients before the backward was over

    def note(self, index: int, parameter: Tensor) -> bool:
        """Note that a gradient came to a parameter; False: it wants a closer look at once."""
        if running_backward() != self._task:
            return False
        if len(parameter._post_accumulate_grad_hooks) > 1:
            return False  # somebody else acts on it as soon as it is there
        self._pending.append(index)
        return True

    def came(self, index: int, task: int, *, is_innermost: bool) -> None:
        """Take a gradient that was looked at; others of the same backward need only be noted."""
        self.fresh.append(index)
        if is_innermost:
            self._task = task

    def begin(self) -> None:
        """Forget the step before."""
        self._task = _NONE
        self._pending.clear()
        self.fresh.clear()
        self.are_fine, self._has_read = True, False

    def end(self) -> None:
        """Expect no more of the backward."""
        self.land()
        self._task = _NONE

    def land(self) -> None:
        """Add what was noted to the step under way."""
        if not self._pending:
            return
        # Another thread may be about to note something.
        pending, self._pending = self._pending, []
        taken, _ = self._recorder.under_way
        if taken is not None:
            for index in pending:
                taken.arrived.add(index)
                self._recorder.weights.arrived(index)
            self.fresh += pending

    def read(self) -> None:
        """Read what has come so far, so that it is known whether the backward went well."""
        weights, numbers = self._recorder.weights, self._recorder.under_way[1]
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.are_fine = False  # averages are written when the backward is over
            return
        self.land()
        known = len(numbers.left)
        weights.after_backward(self.fresh, numbers)
        self._has_read |= bool(self.fresh)
        self.fresh.clear()
        norms = [norm for _, row in numbers.left[known:] for norm in row.values]
        self.are_fine = self.are_fine and all(map(math.isfinite, norms))

    def unread(self) -> list[int]:
        """Return which gradients of the step have changed since they were read."""
        weights, taken = self._recorder.weights, self._recorder.under_way[0]
        assert taken is not None
        self.fresh.clear()
        if not self._has_read:
            return sorted(taken.arrived)
        return [
            index
            for index in sorted(taken.arrived)
            if (gradient := weights.all[index].parameter.grad) is None
            or (id(gradient), gradient._version) != weights.all[index].left
        ]

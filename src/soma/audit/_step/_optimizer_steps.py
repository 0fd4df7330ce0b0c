"""Optimizers in the middle of a step: inside each other, in a closure, under a gradient scaler."""

import sys
from types import FrameType

import torch
from torch.optim import Optimizer

from soma.audit._measure._boards import Boards
from soma.audit._parameters._weight import ParameterNorms


def parameters_of(optimizer: Optimizer) -> list[torch.Tensor]:
    """Return all parameters of an optimizer."""
    return [one for group in getattr(optimizer, "param_groups", ()) for one in group["params"]]


class OpenSteps:
    """The optimizers that are in the middle of a step.

    A subclass that calls its parent's `step` makes torch call the hooks twice, one inside the
    other; an optimizer that raises makes it leave out the hook at the end.
    """

    def __init__(self) -> None:
        self._depth: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._depth)

    def enter(self, optimizer: Optimizer) -> bool:
        """Note a beginning; False: it is inside a step of the same optimizer."""
        key = id(optimizer)
        if key in self._depth and times_on_stack(optimizer) > 1:
            self._depth[key] += 1
            return False
        self._depth[key] = 1
        return True

    def was_entered(self, optimizer: Optimizer) -> None:
        """Note that a step is under way whose beginning was not seen."""
        self._depth[id(optimizer)] = 1

    def leave(self, optimizer: Optimizer) -> bool:
        """Note an end; False: the step that it is inside of goes on."""
        key = id(optimizer)
        self._depth[key] = self._depth.get(key, 1) - 1
        if self._depth[key] > 0:
            return False
        del self._depth[key]
        return True


def read_scaler(optimizer: Optimizer, norms: ParameterNorms, boards: Boards) -> None:
    """Note by what a gradient scaler has multiplied the loss, if one is at work."""
    fused = getattr(optimizer, "grad_scale", None)
    if isinstance(fused, torch.Tensor):
        norms.scaled_at_step = True
    found = getattr(optimizer, "found_inf", None)
    if isinstance(found, torch.Tensor):
        norms.found_inf = boards.put(found.reshape(1))
    scaler = _scaler_on_stack()
    if scaler is not None and scaler.is_enabled():
        scale = scaler._scale
        if scale is not None:
            norms.scale = boards.put(scale.reshape(1))


def _scaler_on_stack() -> "torch.amp.GradScaler | None":
    """Return the scaler whose `step` has called the optimizer: nothing else tells which it is."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(16):
        if frame is None:
            return None
        if frame.f_code.co_filename.endswith("grad_scaler.py"):
            found = frame.f_locals.get("self")
            if isinstance(found, torch.amp.GradScaler):
                return found
        frame = frame.f_back
    return None


def times_on_stack(optimizer: Optimizer) -> int:
    """Count the steps of an optimizer that are running, by torch's own wrapper around each."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None:
        if frame.f_code is _WRAPPER:
            args = frame.f_locals.get("args") or (None,)
            count += args[0] is optimizer
        frame = frame.f_back
    return count


def _never(_: object) -> None:
    """Stand in for a step, to learn what torch's wrapper around steps looks like."""


_WRAPPER = Optimizer.profile_hook_step(_never).__code__

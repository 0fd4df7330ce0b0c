"""Finds the loss that a backward has started from on the stack, where nobody tells it.

Autograd's graph leads from the loss to the weights and not back, and a hook is given a gradient
alone. But `torch.autograd.backward`, which `loss.backward()` calls, waits on the stack of the
thread that called it, with what it was given: on a CPU that is the thread of the hook itself.
"""

import sys
from collections.abc import Sequence
from types import FrameType

import torch
from torch import Tensor

from soma.audit._measure._tensors import plain
from soma.audit._step._trace import StepTrace

_DEEPEST = 8  # frames between the engine's own call and `torch.autograd.backward`
_CODE = torch.autograd.backward.__code__


def loss_on_stack(trace: StepTrace, task: int) -> Sequence[Tensor]:
    """Return the losses of a backward that has just reached its first weight.

    Each is a single number; there are none where they were told already, or are not known: where
    the backward was started with gradients of its own from tensors of more than one number, or
    several threads run one and the hook is on none of them.
    """
    if task in trace.reached or len(trace.loss) > len(trace.reached):  # told for this backward, too
        return ()
    frame = _outermost(sys._getframe(1))
    if frame is None:
        frame = _only_other()
    if frame is None:
        return ()
    given = frame.f_locals.get("tensors")
    roots = [given] if isinstance(given, Tensor) else list(given or ())
    losses = [plain(one) for one in roots if isinstance(one, Tensor) and one.numel() == 1]
    known = [one for one in losses if one is not None]
    return known if len(known) == len(roots) else ()


def _outermost(frame: FrameType | None) -> FrameType | None:
    """Return the outermost call of backward on a stack: a checkpoint calls it inside of one."""
    found = None
    while frame is not None:
        if frame.f_code is _CODE:
            found = frame
        frame = frame.f_back
    return found


def _only_other() -> FrameType | None:
    """Return the call of backward of the only other thread that waits in one.

    The engine works for a GPU on threads of its own.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None  # the stacks of threads that run cannot be read
    found = [one for one in map(_waiting, sys._current_frames().values()) if one is not None]
    return found[0] if len(found) == 1 else None


def _waiting(frame: FrameType | None) -> FrameType | None:
    for _ in range(_DEEPEST):
        if frame is None or frame.f_code is _CODE:
            return frame
        frame = frame.f_back
    return None

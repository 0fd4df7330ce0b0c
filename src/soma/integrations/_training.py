"""`Training`: the audit of one training, which callbacks begin and end.

`Loop` finds out that a training has died where its library does not tell.
"""

import sys
from contextlib import ExitStack
from threading import get_ident
from types import FrameType
from weakref import ref

import torch
from torch import nn

from soma.audit import Audit
from soma.audit._step._hooks import Inert


class Loop:
    """A training loop that is running on this thread, known by its frame.

    Some libraries tell their callbacks nothing when an error or Ctrl-C ends a training. The frame
    itself is not kept, since its batches would live on with it.
    """

    def __init__(self, name: str) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != name:
            frame = frame.f_back
        self._frame = None if frame is None else (id(frame), frame.f_code)
        self._thread = get_ident()

    def is_over(self) -> bool:
        """Whether the loop has certainly ended; on another thread nobody knows."""
        frame: FrameType | None = sys._getframe(1)
        if self._frame is None or get_ident() != self._thread:
            return False
        while frame is not None:
            if (id(frame), frame.f_code) == self._frame:
                return False
            frame = frame.f_back
        return True


class Training:
    """An audit that is under way, or over."""

    def __init__(self, audit: Audit, stack: ExitStack, loop: Loop | None) -> None:
        self.audit = audit
        self.lost: str | None = None  # why the training cannot recover, once it can't
        self._stack = stack
        self._loop = loop

    def watch_loop(self, model: nn.Module) -> None:
        """Have the model's next forward end the audit if the loop has died by then."""
        if self._loop is not None:
            self._stack.callback(model.register_forward_pre_hook(_LoopWatch(self)).remove)

    def lose(self, reason: str) -> None:
        """Note that the training cannot recover."""
        self.lost = self.lost or reason

    def end_if_over(self) -> None:
        """End the audit if the loop has died without a word."""
        if self._loop is not None and self._loop.is_over():
            self.end(RuntimeError("the training loop has ended before its time"))

    def end(self, error: BaseException | None = None) -> None:
        """Take all hooks off, and end the run that was begun with the audit; once.

        Args:
            error: what the training ended with. A step that it broke off is no step.
        """
        kind = None if error is None else type(error)
        self._stack.pop_all().__exit__(kind, error, None)


class _LoopWatch:
    """Before the forward of a model: is it still trained? A copy of it does nothing."""

    def __init__(self, training: Training) -> None:
        self._training = ref(training)

    def __call__(self, module: nn.Module, given: object) -> None:
        if not torch.compiler.is_compiling() and (training := self._training()) is not None:
            training.end_if_over()

    def __deepcopy__(self, _: object) -> Inert:
        return Inert()

    def __reduce__(self) -> tuple[type[Inert], tuple[()]]:
        return Inert, ()

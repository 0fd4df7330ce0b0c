"""`Turn`: one turn of a node, as told by `_mode.py` and by hooks on its modules.

Nothing here may fail into the user's code: the first error is kept, and the turn is not used.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from threading import get_ident
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from soma.audit._flow._calls import Calls, Enter, Leave
from soma.audit._flow._operation import Given, Operations, given
from soma.audit._flow._record import MOST_STEPS, Origins, Record, Step
from soma.audit._flow._values import arrays_in, shape_of, tensors_in
from soma.core import FlowKind

P = ParamSpec("P")
R = TypeVar("R")


def _guarded(
    method: Callable[Concatenate["Turn", P], R],
) -> Callable[Concatenate["Turn", P], R | None]:
    @wraps(method)
    def guarded(self: "Turn", /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        if self.failure is not None:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:  # whatever it is, the user's forward goes on
            self._failed(error)
            return None

    return guarded


class Turn:
    """One turn of a node that has `module` inside."""

    def __init__(self, module: nn.Module) -> None:
        self.record = Record(module)
        self.failure: str | None = None
        self.has_transform = False  # `vmap`, `grad` and the like, which are not looked into
        self._thread = get_ident()
        self._calls = Calls(self.record)
        self._operations = Operations(self.record, self._calls)

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Be told of the calls of all submodules inside a `with`."""
        with ExitStack() as handles:
            try:
                for part in self.record.module.modules():
                    if id(part) in self.record.paths:
                        enter = part.register_forward_pre_hook(Enter(self), with_kwargs=True)
                        handles.callback(enter.remove)
                        leave = part.register_forward_hook(Leave(self), always_call=True)
                        handles.callback(leave.remove)
            except Exception as error:  # a module that takes no hooks
                self._failed(error)
            yield

    def note(self) -> str | None:
        """Return why the turn is not whole."""
        if self.failure is not None:
            return f"tracing failed: {self.failure}"
        if self.record.full:
            return f"more than {MOST_STEPS} steps; the rest is not shown"
        return "inside a `torch.func` transform nothing was seen" if self.has_transform else None

    def sees(self) -> bool:
        """Whether what runs now belongs to the turn, and there is room for it."""
        if self.failure is not None or self.record.full or get_ident() != self._thread:
            return False
        if torch.compiler.is_compiling() or in_backward():
            return False
        if torch._C._functorch.peek_interpreter_stack() is not None:
            self.has_transform = True
            return False
        return True

    @_guarded
    def begin(self, x: object) -> None:
        """Write down what the node is given; at a fan-in, each of the values."""
        arrays: Origins = ()
        for name, value in _parts(x):
            made: Origins = ((self._end("input", name, value), None),)
            for tensor in tensors_in(value):
                self.record.label(tensor, made)
            for array in arrays_in(value):
                self.record.label(array, made)
                arrays = tuple(dict.fromkeys(arrays + made))
        self.record.given_arrays = arrays

    @_guarded
    def end(self, output: object, extra: object) -> None:
        """Write down what the node gives: its output, and what it says beside that."""
        said = [(name, value) for name, value in _parts(extra) if name]
        for name, value in [*_parts(output), *said]:
            values: list[Tensor | np.ndarray] = [*tensors_in(value), *arrays_in(value)]
            if values or not name:
                step = self._end("output", name, value)
                for one in values:
                    self.record.connect(self.record.origins(one), step)

    def enter(self, module: nn.Module, arguments: object) -> None:
        """Begin the call of a submodule."""
        if self.sees():
            self._enter(module, arguments)

    def leave(self, module: nn.Module, output: object) -> None:
        """End the call of a submodule."""
        if self.sees():
            self._leave(module, output)

    @_guarded
    def given(self, args: object, kwargs: Mapping[str, object]) -> Given:
        """Return the tensors that a function is about to be given."""
        return given(args, kwargs)

    @_guarded
    def ran(self, name: str, given: Given | None, args: tuple[object, ...], answer: object) -> None:
        """Write down what a torch function did."""
        if given is not None:
            self._operations.ran(name, given, args, answer)

    @_guarded
    def _enter(self, module: nn.Module, arguments: object) -> None:
        self._calls.enter(module, arguments)

    @_guarded
    def _leave(self, module: nn.Module, output: object) -> None:
        self._calls.leave(module, output)

    def _failed(self, error: Exception) -> None:
        self.failure = f"{type(error).__name__}: {error}"

    def _end(self, kind: FlowKind, name: str, value: object) -> Step:
        step = Step(kind, (kind, name), name or kind, "")
        step.shape = shape_of(list(tensors_in(value)))
        self.record.steps.append(step)
        return step


def in_backward() -> bool:
    """Whether a backward runs, where a checkpoint computes again what is known already."""
    return torch._C._current_graph_task_id() != -1


def _parts(value: object) -> list[tuple[str, object]]:
    """Return the named parts of a dict, or the value without a name."""
    if isinstance(value, Mapping) and value and all(isinstance(name, str) for name in value):
        return list(value.items())
    return [("", value)]

"""The calls of submodules in a turn: which becomes a box, and which is shown by what it called.

A call is a box when it called no other module. Ones of the user's own are opened all the same
when a gradient is stopped inside, since the cut is what a reader looks for.
"""

from typing import Any

import torch
from torch import nn

from soma.audit._flow._place import in_autograd_function
from soma.audit._flow._record import Origins, Record, Step
from soma.audit._flow._values import shape_of, tensors_in


def gradients_stopped() -> bool:
    """Whether what runs now gets no gradient because of a `no_grad` around it."""
    return not torch.is_grad_enabled() and not in_autograd_function()


class ModuleCall:
    """A call of a submodule that has begun."""

    __slots__ = (
        "called_others",
        "cut",
        "first_edge",
        "first_step",
        "first_written",
        "id",
        "inputs",
        "module",
        "path",
        "stopped",
    )

    def __init__(self, record: Record, module: nn.Module, path: str, id: str) -> None:
        self.module = module
        self.path = path
        self.id = id
        self.inputs: Origins = ()
        self.stopped = gradients_stopped()
        self.called_others = False
        self.cut: str | None = None  # what stopped a gradient inside
        self.first_step = len(record.steps)
        self.first_edge = len(record.edges)
        self.first_written = len(record.written_state)


class Calls:
    """The calls that have begun and not ended, the turn itself at the bottom."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._stack = [ModuleCall(record, record.module, "", "")]

    @property
    def innermost(self) -> ModuleCall:
        """The call in which the code runs now."""
        return self._stack[-1]

    def enter(self, module: nn.Module, arguments: object) -> None:
        """Begin a call."""
        record = self._record
        path = record.paths[id(module)]
        name = path or type(module).__name__
        time = record.nth(("module", path))
        call = ModuleCall(record, module, path, name if time == 1 else f"{name}#{time}")
        for tensor in tensors_in(arguments):
            stops = "no_grad" if call.stopped and tensor.requires_grad else None
            call.inputs += tuple((source, cut or stops) for source, cut in record.origins(tensor))
        if len(self._stack) > 1:
            self.innermost.called_others = True
        self._stack.append(call)

    def leave(self, module: nn.Module, output: object) -> None:
        """End a call, and those in it that never came to their end."""
        if all(call.module is not module for call in self._stack[1:]):
            return
        while len(self._stack) > 1:
            call = self._stack.pop()
            if call.module is module:
                break
        if _is_box(call, self._record):
            self._close(call, output)

    def _close(self, call: ModuleCall, output: object) -> None:
        """Put one box in the place of everything that the call did."""
        record = self._record
        box = Step("module", ("module", call.id), type(call.module).__name__, call.path)
        box.module = call.module
        inside = record.steps[call.first_step :]
        del record.steps[call.first_step :]
        for step in inside:
            step.part_of = box
            if step is record.numpy:
                record.numpy = None
        record.add(box)
        record.forget(record.written_state[call.first_written :])  # such as running means
        del record.written_state[call.first_written :]

        tensors = list(tensors_in(output))
        box.shape = shape_of(tensors)
        ends = call.cut if not any(one.requires_grad for one in tensors) else None
        inputs = tuple((source, cut or ends) for source, cut in call.inputs)
        passed = {source.shown() for source, _ in inputs}
        others = tuple(
            (source, cut)
            for source, _, cut in record.edges[call.first_edge :]
            if source.shown() not in passed and source.shown() is not box
        )
        del record.edges[call.first_edge :]
        record.connect(inputs + others, box)
        learns = call.stopped and any(one.requires_grad for one in call.module.parameters())
        for tensor in tensors:
            record.label(tensor, ((box, "no_grad" if learns else None),))


def _is_box(call: ModuleCall, record: Record) -> bool:
    if call.called_others:
        return False
    if type(call.module).__module__.startswith("torch.nn."):
        return True
    if not call.path:  # the node's own module: there is nothing else to see
        return False
    return call.cut is None or len(record.steps) == call.first_step


class Enter:
    """A hook that tells a turn that a call begins; a copy of it does nothing."""

    def __init__(self, turn: Any = None) -> None:
        self.turn = turn

    def __call__(self, module: nn.Module, args: object, kwargs: object) -> None:
        """Tell; nothing is returned, which leaves the arguments alone."""
        if self.turn is not None:
            self.turn.enter(module, (args, kwargs))

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()


class Leave:
    """A hook that tells a turn that a call has ended; a copy of it does nothing."""

    def __init__(self, turn: Any = None) -> None:
        self.turn = turn

    def __call__(self, module: nn.Module, args: object, output: object) -> None:
        """Tell; nothing is returned, which leaves the output alone."""
        if self.turn is not None:
            self.turn.leave(module, output)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()

"""The hooks that an audit puts on modules, tensors and parameters.

Each is a small object that knows its audit by a weak reference. A copy of it, as `deepcopy` or
`torch.save` of an audited module makes one, does nothing for ever.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import ref

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

if TYPE_CHECKING:
    from soma.audit._origin._kept_forward import KeptForward
    from soma.audit._step._recorder import Recorder
    from soma.audit._step._trace import Reading


class Inert:
    """What a copy of a hook is: nothing happens when it is called."""

    def __call__(self, *_: object) -> None:
        """Do nothing; None leaves outputs and gradients as they are."""


class Hook:
    """The base of all hooks."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = ref(recorder)

    def __deepcopy__(self, _: object) -> Inert:
        return Inert()

    def __reduce__(self) -> tuple[type[Inert], tuple[()]]:
        return Inert, ()

    def awake(self) -> "Recorder | None":
        """Return the audit, unless it is over or torch is tracing through this call."""
        if torch.compiler.is_compiling():
            return None
        recorder = self._recorder()
        if recorder is None or recorder.is_deaf or has_no_numbers():
            return None
        return recorder


class ForwardSeen(Hook):
    """After a module's forward: looks at its output."""

    __slots__ = ("_spot",)

    def __init__(self, recorder: "Recorder", spot: int) -> None:
        super().__init__(recorder)
        self._spot = spot

    def __call__(self, module: nn.Module, given: object, output: object) -> None:
        """Record a call."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(self._spot, recorder.forward_seen, self._spot, output)


class RootStarted(Hook):
    """Before the forward of a module that was given by name: it is that one's turn."""

    __slots__ = ("_node",)

    def __init__(self, recorder: "Recorder", node: str) -> None:
        super().__init__(recorder)
        self._node = node

    def __call__(
        self, module: nn.Module, given: tuple[object, ...], named: dict[str, object]
    ) -> None:
        """Say whose turn it is, and with what."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.forward_begins, self._node, module, given, named)


class RootEnded(Hook):
    """After the forward of a module that is run again by itself, if numbers go bad."""

    __slots__ = ("_node",)

    def __init__(self, recorder: "Recorder", node: str) -> None:
        super().__init__(recorder)
        self._node = node

    def __call__(self, module: nn.Module, given: object, output: object) -> None:
        """Say what it gave."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.replays.end, self._node, output)


class OutputGradientSeen(Hook):
    """When the gradient of an output is there that a second run of the step may need."""

    __slots__ = ("_call", "_suffix")

    def __init__(self, recorder: "Recorder", call: "KeptForward", suffix: str) -> None:
        super().__init__(recorder)
        self._call = call
        self._suffix = suffix

    def __call__(self, gradient: Tensor) -> None:
        """Keep the gradient."""
        if (recorder := self.awake()) is not None:
            seen = recorder.replays.gradient_came
            recorder.guarded(None, seen, self._call, self._suffix, gradient)


class InputSeen(Hook):
    """Before an activation's forward: looks at what it is given."""

    __slots__ = ()

    def __call__(self, module: nn.Module, given: tuple[object, ...]) -> None:
        """Record the size of the input."""
        if (recorder := self.awake()) is not None and given:
            recorder.guarded(None, recorder.input_seen, module, given[0])


class GradientSeen(Hook):
    """When the gradient of a tensor is there; the tensor itself is not kept."""

    __slots__ = ("_reading",)

    def __init__(self, recorder: "Recorder", reading: "Reading") -> None:
        super().__init__(recorder)
        self._reading = reading

    def __call__(self, gradient: Tensor) -> None:
        """Record the gradient."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.gradient_seen, self._reading, gradient)


class Accumulated(Hook):
    """When a parameter's gradient has been added to its `.grad`."""

    __slots__ = ("_index",)

    def __init__(self, recorder: "Recorder", index: int) -> None:
        super().__init__(recorder)
        self._index = index

    def __call__(self, parameter: Tensor) -> None:
        """Note that the gradient is new."""
        recorder = self._recorder()
        if recorder is not None and recorder.arrivals.note(self._index, parameter):
            return
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.accumulated, self._index)


class BackwardEnded(Hook):
    """At the end of a backward, after all that others do there."""

    __slots__ = ("_task", "_turns")

    def __init__(self, recorder: "Recorder", task: int) -> None:
        super().__init__(recorder)
        self._task = task
        self._turns = 1

    def __call__(self) -> None:
        """Wait for those who queued up later, as data parallel averaging does; then record."""
        if (recorder := self.awake()) is None:
            return
        if self._turns:
            self._turns -= 1
            at_backward_end(self)
            return
        recorder.guarded(None, recorder.backward_ended, self._task)


class StepBegins(Hook):
    """Before an optimizer's step."""

    __slots__ = ()

    def __call__(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        """Record what the optimizer finds."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.before_step, optimizer)


class StepEnds(Hook):
    """After an optimizer's step."""

    __slots__ = ()

    def __call__(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        """Record what has changed; then, unguarded, tell those who asked to be told."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.after_step, optimizer)
            recorder.tell()


def at_backward_end(function: Callable[[], None]) -> None:
    """Call a function when the backward that runs now is over."""
    torch.autograd.Variable._execution_engine.queue_callback(function)


def running_backward() -> int:
    """Return the number of the backward that runs on this thread; -1: none does."""
    return torch._C._current_graph_task_id()


def has_no_numbers() -> bool:
    """Whether values are none, or operations are written down to be run elsewhere, ours with them.

    The former is so inside function transforms of `torch.func`, and in modes that work on tensors
    without numbers; the latter under `torch.jit.trace` and the ONNX exporter above it.
    """
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return True
    if torch._C._get_tracing_state() is not None:
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    kinds = torch._C._TorchDispatchModeKey
    return any(
        torch._C._get_dispatch_mode(kind) is not None
        for kind in (kinds.PROXY, kinds.FAKE, kinds.FUNCTIONAL)
    )

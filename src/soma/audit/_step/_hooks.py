"""The hooks that an audit puts on modules, tensors, parameters and optimizers.

Each is a small object with a weak reference to the recorder, and calls one method of it. They
are here in the order in which they are called in a step. A copy of one, as `deepcopy` or
`torch.save` of an audited module makes, is `Inert`.
"""

from typing import TYPE_CHECKING
from weakref import ref

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from soma.audit._origin._kept_forward import KeptForward
from soma.audit._step._torch_state import at_backward_end, has_no_numbers
from soma.audit._step._trace import Reading

if TYPE_CHECKING:  # it puts the hooks on tensors itself
    from soma.audit._step._recorder import Recorder


class Inert:
    """A hook that does nothing, as the copy of a hook."""

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
        """Return the recorder, unless its audit is over or tensors hold no numbers now."""
        if torch.compiler.is_compiling():
            return None
        recorder = self._recorder()
        if recorder is None or recorder.is_deaf or has_no_numbers():
            return None
        return recorder


class RootStarted(Hook):
    """Before the forward of a module that was given by name, a root."""

    __slots__ = ("_node",)

    def __init__(self, recorder: "Recorder", node: str) -> None:
        super().__init__(recorder)
        self._node = node

    def __call__(
        self, module: nn.Module, given: tuple[object, ...], named: dict[str, object]
    ) -> None:
        """Record which root runs, and what it is given."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.forward_begins, self._node, module, given, named)


class InputSeen(Hook):
    """Before an activation's forward: looks at what it is given."""

    __slots__ = ()

    def __call__(self, module: nn.Module, given: tuple[object, ...]) -> None:
        """Record the size of the input."""
        if (recorder := self.awake()) is not None and given:
            recorder.guarded(None, recorder.input_seen, module, given[0])


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


class RootEnded(Hook):
    """After the forward of a root that is run again by itself, if a number goes bad."""

    __slots__ = ("_node",)

    def __init__(self, recorder: "Recorder", node: str) -> None:
        super().__init__(recorder)
        self._node = node

    def __call__(self, module: nn.Module, given: object, output: object) -> None:
        """Record what it returned."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.replays.end, self._node, output)


class GradientSeen(Hook):
    """When the gradient of a tensor is there that a module returned; the tensor is not kept."""

    __slots__ = ("_reading",)

    def __init__(self, recorder: "Recorder", reading: Reading) -> None:
        super().__init__(recorder)
        self._reading = reading

    def __call__(self, gradient: Tensor) -> None:
        """Record the gradient."""
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.gradient_seen, self._reading, gradient)


class OutputGradientSeen(Hook):
    """When the gradient of an output is there which a second run of the step may need."""

    __slots__ = ("_call", "_suffix")

    def __init__(self, recorder: "Recorder", call: KeptForward, suffix: str) -> None:
        super().__init__(recorder)
        self._call = call
        self._suffix = suffix

    def __call__(self, gradient: Tensor) -> None:
        """Keep the gradient."""
        if (recorder := self.awake()) is not None:
            seen = recorder.replays.gradient_came
            recorder.guarded(None, seen, self._call, self._suffix, gradient)


class Accumulated(Hook):
    """When a parameter's gradient has been added to its `.grad`."""

    __slots__ = ("_index",)

    def __init__(self, recorder: "Recorder", index: int) -> None:
        super().__init__(recorder)
        self._index = index

    def __call__(self, parameter: Tensor) -> None:
        """Note that a gradient came, by the short way where one like it came just before."""
        recorder = self._recorder()
        if recorder is not None and recorder.arrivals.note(self._index, parameter):
            return
        if (recorder := self.awake()) is not None:
            recorder.guarded(None, recorder.accumulated, self._index)


class BackwardEnded(Hook):
    """At the end of a backward, after everything that others do there."""

    __slots__ = ("_backward", "_is_first")

    def __init__(self, recorder: "Recorder", backward: int) -> None:
        super().__init__(recorder)
        self._backward = backward
        self._is_first = True

    def __call__(self) -> None:
        """Queue up once more behind others, such as data-parallel averaging; then record."""
        if (recorder := self.awake()) is None:
            return
        if self._is_first:
            self._is_first = False
            at_backward_end(self)
            return
        recorder.guarded(None, recorder.backward_ended, self._backward)


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

"""What is remembered of a step until it ends: readings of tensors, calls, passes. No tensors.

A pass is a forward and the backward that belongs to it; gradient accumulation has several in
a step.
"""

from typing import Any
from weakref import ref

from torch import Tensor

from soma.audit._measure._boards import Row
from soma.audit._measure._channels import ChannelOutput
from soma.audit._measure._spectrum import Spectrum
from soma.audit._origin._kept_forward import Repeatable


class Reading:
    """The numbers of one tensor, and of the gradients that came to it."""

    __slots__ = (
        "activation",
        "axis",
        "channel_gradients",
        "channels",
        "gradients",
        "is_number",
        "kept_for",
        "node",
        "tensor",
        "version",
    )

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = ref(tensor)
        self.version = version_of(tensor)
        self.node: object = tensor.grad_fn  # until the backward begins
        self.is_number = tensor.dim() == 0  # as a loss is
        self.activation: Row | None = None
        self.gradients: list[tuple[int, Row]] = []  # with the number of the backward
        # The calls, with the tensor's suffix, that keep its gradient to be run again.
        self.kept_for: tuple[tuple[Repeatable, str], ...] = ()
        self.axis: int | None = None
        self.channels: ChannelOutput | None = None
        self.channel_gradients: list[tuple[int, Tensor]] = []


class Call:
    """One call of a spot: what it returned, and what its activation was given."""

    __slots__ = ("input", "parts")

    def __init__(self, parts: list[tuple[str, Reading]], given: "Row | None") -> None:
        self.parts = parts
        self.input = given


class Pass:
    """A forward and its backward."""

    __slots__ = (
        "calls",
        "handles",
        "has_backward",
        "inputs",
        "open_rows",
        "outputs",
        "readings",
        "roots",
    )

    def __init__(self) -> None:
        self.calls: dict[int, list[Call]] = {}
        self.readings: dict[int, Reading] = {}  # by the tensor's id, while it lives
        self.inputs: dict[int, Row] = {}  # by activation, what it was given last
        self.open_rows: dict[int, Tensor] = {}  # by softmax, rows that can move; until it returns
        self.outputs: list[Reading] = []  # of the network itself
        self.roots: list[tuple[int, list[Reading]]] = []  # calls of what was given by name
        self.handles: list[Any] = []  # of hooks on tensors that outlive the step
        self.has_backward = False

    def known(self, tensor: Tensor) -> Reading | None:
        """Return the reading of this very tensor, if nobody has written to it since."""
        found = self.readings.get(id(tensor))
        if found is None or found.tensor() is not tensor or found.version != version_of(tensor):
            return None
        return found

    def forget(self) -> None:
        """Let go of all that belongs to the graph of this pass."""
        for reading in self.readings.values():
            reading.node = None
        for root in self.roots:
            for reading in root[1]:
                reading.node = None
        self.readings.clear()
        self.open_rows.clear()

    def end(self) -> None:
        """Let go of all but numbers, and take the hooks off tensors that go on living."""
        self.forget()
        for _, parts in self.roots:
            for reading in parts:
                reading.kept_for = ()
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


class Taken:
    """All that is remembered of one step."""

    __slots__ = (
        "arrived",
        "began",
        "calls",
        "dark",
        "elsewhere",
        "held",
        "loss",
        "number",
        "parents",
        "passes",
        "real",
        "repeatable",
        "spectra",
        "stepped",
        "steppers",
        "tasks",
        "whole",
    )

    def __init__(self, number: int, *, whole: bool, began: float) -> None:
        self.number = number
        self.whole = whole
        self.began = began
        self.spectra: dict[int, Spectrum] = {}  # by spot
        self.passes: list[Pass] = []
        self.loss: list[Row] = []
        self.tasks: set[int] = set()  # the backwards of which a hook has heard
        self.real: set[int] = set()  # of them, those that reached a parameter
        # Norms of gradients in other processes: as backward left them, and at the step.
        self.elsewhere: tuple[float, float] | None = None
        self.parents: dict[int, int] = {}  # of a backward inside another one
        self.arrived: set[int] = set()  # parameters with a new gradient
        self.calls: dict[int, int] = {}  # of each spot, also where the step is not whole
        self.dark: dict[int, int] = {}  # calls of each spot with gradients off
        self.repeatable: list[Repeatable] = []  # the forwards, to run them again
        self.stepped = False  # an optimizer has stepped
        self.steppers: set[int] = set()  # ids of the optimizers that have
        self.held: set[int] = set()  # the parameters that those optimizers hold

    def is_real(self, task: int) -> bool:
        """Whether a backward, or one around or inside it, brought gradients to parameters."""
        if task in self.real:
            return True
        above = self.parents.get(task)
        below = any(parent == task and one in self.real for one, parent in self.parents.items())
        return below or (above is not None and above in self.real)


def version_of(tensor: Tensor) -> int:
    """Return how often a tensor was written to; -1 where nobody counts."""
    return -1 if tensor.is_inference() else tensor._version

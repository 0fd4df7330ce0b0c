"""`StepTrace`: what is remembered of a step until its numbers are settled.

It holds a `Pass` for each forward with its backward (gradient accumulation has several in a
step), a `Call` for each call of a spot in it, and a `Reading` for each tensor that was returned.
None of them keeps a tensor of the user's alive.
"""

from collections import deque
from typing import Any
from weakref import ref

from torch import Tensor

from soma.audit._measure._boards import Row
from soma.audit._measure._channels import ChannelOutput
from soma.audit._measure._spectrum import Spectrum
from soma.audit._origin._kept_forward import KeptForward
from soma.audit._parameters._weight import ParameterNorms

_MOST_FORWARDS = 64  # of each root, whose graphs are kept for a backward that may come


class Reading:
    """The numbers of one tensor, and of the gradients that came to it."""

    __slots__ = (
        "activation",
        "axis",
        "channel_gradients",
        "channels",
        "gradients",
        "is_scalar",
        "kept_for",
        "node",
        "tensor",
        "version",
    )

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = ref(tensor)
        self.version = version_of(tensor)
        self.node: object = tensor.grad_fn  # until the backward begins
        self.is_scalar = tensor.dim() == 0  # as a loss is
        self.activation: Row | None = None
        self.gradients: list[tuple[int, Row]] = []  # each with the id of its backward
        # The forwards, each with the tensor's suffix, that keep its gradient to be run again.
        self.kept_for: tuple[tuple[KeptForward, str], ...] = ()
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
        "_called",
        "_in_eval",
        "_on_graph",
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
        self.calls: dict[int, list[Call]] = {}  # by spot
        self.readings: dict[int, Reading] = {}  # by the tensor's id, while it lives
        self.inputs: dict[int, Row] = {}  # by activation, what it was given last
        self.open_rows: dict[int, Tensor] = {}  # by softmax, rows that can move; until it returns
        self.outputs: list[Reading] = []  # of the network itself
        self.roots: list[tuple[int, list[Reading]]] = []  # calls of what was given by name
        self.handles: list[Any] = []  # of hooks on tensors that outlive the step
        self.has_backward = False
        self._called: set[str | None] = set()  # the roots
        self._in_eval = True  # all of those were
        # By forward of a root: those that hold on to its graph, and so to its activations.
        self._on_graph: deque[list[Reading]] = deque([[]])

    def begin_forward(self, root: str | None, *, in_eval: bool) -> bool:
        """Take note that a root is called, and return whether all before it were evaluations.

        Nobody says that no backward will follow a forward. Where all is in eval it is taken for
        granted once a root is called again, and else of the oldest forwards when there are many.
        """
        is_again = root in self._called
        self._called.add(root)
        self._in_eval = self._in_eval and in_eval
        were_evaluations = is_again and self._in_eval
        if were_evaluations:
            self.forget_graph()
            self.roots.clear()
        elif len(self._on_graph) > _MOST_FORWARDS * len(self._called):
            _leave_graph(self._on_graph.popleft())
        self._on_graph.append([])
        return were_evaluations

    def add(self, tensor: Tensor) -> Reading:
        """Begin a reading of a tensor."""
        reading = Reading(tensor)
        self.readings[id(tensor)] = reading
        self._on_graph[-1].append(reading)
        return reading

    def known(self, tensor: Tensor) -> Reading | None:
        """Return the reading of this very tensor, if nobody has written to it since."""
        found = self.readings.get(id(tensor))
        if found is None or found.tensor() is not tensor or found.version != version_of(tensor):
            return None
        return found

    def forget_graph(self) -> None:
        """Let go of all that belongs to autograd's graph of this pass."""
        for readings in self._on_graph:
            _leave_graph(readings)
        self._on_graph = deque([[]])
        self.readings.clear()
        self.open_rows.clear()

    def end(self) -> None:
        """Let go of all but numbers, and take the hooks off tensors that go on living."""
        self.forget_graph()
        for _, parts in self.roots:
            for reading in parts:
                reading.kept_for = ()
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


class StepTrace:
    """All that is remembered of one step. A backward goes by the id that torch gives it."""

    __slots__ = (
        "arrived",
        "backwards",
        "began",
        "calls",
        "calls_without_grad",
        "elsewhere",
        "forwards",
        "has_stepped",
        "held",
        "loss",
        "norms",
        "number",
        "optimizers",
        "outer",
        "passes",
        "reached",
        "spectra",
        "whole",
    )

    def __init__(self, number: int, *, whole: bool, began: float) -> None:
        self.number = number
        self.whole = whole  # every measure is taken
        self.began = began
        self.passes: list[Pass] = []
        self.forwards: list[KeptForward] = []  # to run them again
        self.calls: dict[int, int] = {}  # of each spot, also where the step is not whole
        self.calls_without_grad: dict[int, int] = {}  # of each spot
        self.spectra: dict[int, Spectrum] = {}  # by spot
        self.loss: list[Row] = []
        self.backwards: set[int] = set()  # those of which a hook has heard
        self.reached: set[int] = set()  # of them, those that reached a parameter
        self.outer: dict[int, int] = {}  # of a backward inside another one, that one
        self.arrived: set[int] = set()  # parameters with a new gradient
        self.norms = ParameterNorms()
        self.has_stepped = False  # an optimizer has
        self.optimizers: set[int] = set()  # ids of those that have begun their step
        self.held: set[int] = set()  # the parameters that those hold
        # Norms of gradients in other processes: as backward left them, and at the step.
        self.elsewhere: tuple[float, float] | None = None

    def reached_parameters(self, backward: int) -> bool:
        """Whether a backward, or one around or inside it, brought gradients to parameters."""
        if backward in self.reached:
            return True
        around = self.outer.get(backward)
        inside = any(outer == backward and one in self.reached for one, outer in self.outer.items())
        return inside or (around is not None and around in self.reached)


def _leave_graph(readings: list[Reading]) -> None:
    for one in readings:
        one.node = None


def version_of(tensor: Tensor) -> int:
    """Return how often a tensor was written to; -1 where nobody counts."""
    return -1 if tensor.is_inference() else tensor._version

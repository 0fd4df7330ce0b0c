"""What a torch function means for the flow: a step, a cut, or nothing.

An edge is cut where a value that asks for a gradient flows on without one.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from torch import Tensor

from soma.audit._flow._calls import Calls, gradients_stopped
from soma.audit._flow._place import site
from soma.audit._flow._record import Origins, Record, Step
from soma.audit._flow._values import shape_of, tensors_in, version

_DETACHING = frozenset({"data", "detach", "detach_"})
_LEAVING = frozenset({"bool", "complex", "float", "index", "int", "item", "tolist"})
_TO_NUMPY = frozenset({"array", "numpy"})
_FROM_NUMPY = frozenset({"array_wrap", "as_tensor", "asarray", "tensor"})

# `1 - x` arrives as `__rsub__`; a reader knows it as `sub`.
_PLAIN = {
    "radd": "add",
    "rdiv": "div",
    "rmatmul": "matmul",
    "rmul": "mul",
    "rpow": "pow",
    "rsub": "sub",
    "truediv": "div",
}


class Read(NamedTuple):
    """A tensor that a function reads, as it was before the function ran."""

    tensor: Tensor
    version: int | None
    wants_gradient: bool


class Given(NamedTuple):
    """What tensors a function was given: those it reads, and those of `out=`."""

    read: list[Read]
    out: list[Tensor]


def given(args: object, kwargs: Mapping[str, object]) -> Given:
    """Return the tensors that a function is about to be given."""
    out = list(tensors_in(kwargs.get("out")))
    read = [
        Read(one, version(one), one.requires_grad)
        for one in tensors_in((args, kwargs))
        if not _among(one, out)
    ]
    return Given(read, out)


class Operations:
    """Writes down what the functions between modules, and within them, do."""

    def __init__(self, record: Record, calls: Calls) -> None:
        self._record = record
        self._calls = calls

    def ran(self, name: str, given: Given, args: tuple[object, ...], answer: object) -> None:
        """Write down what the function `name` did with what it was given."""
        name = _plain(name)
        results = list(tensors_in(answer))
        if not results and name in _LEAVING:
            self._left(name, given.read)
        elif not results and name in _TO_NUMPY:
            self._to_numpy(given.read, answer)
        elif name in _FROM_NUMPY and (name == "array_wrap" or not given.read):
            self._from_numpy(args, results)
        elif name in _DETACHING:
            self._detached(given.read, results)
        else:
            self._computed(name, given, results)

    def _computed(self, name: str, given: Given, results: list[Tensor]) -> None:
        record = self._record
        written = [one.tensor for one in given.read if version(one.tensor) != one.version]
        written += given.out
        # What came back as it was is nothing new; and `x[0] = y` returns nothing.
        results = [one for one in results if not _among(one, [r.tensor for r in given.read])]
        results += [one for one in written if not _among(one, results)]
        if not results:
            return
        stopped = any(one.wants_gradient for one in given.read) and gradients_stopped()
        inputs = self._inputs(name, given.read, stopped)
        weights = dict(
            record.weights[id(one.tensor)] for one in given.read if id(one.tensor) in record.weights
        )
        made: Origins = ()
        if inputs or weights:
            step = self._step(name)
            step.weights, step.shape = weights, shape_of(results)
            record.connect(inputs, step)
            learns = stopped and any(one.requires_grad for one in weights.values())
            made = ((step, "no_grad" if learns else None),)
        for one in results:
            record.label(one, made)
        for one in written if made else ():
            if record.is_state(one):
                record.written_state.append(id(one))
            for other in record.overlapping(one):
                if not _among(other, results):
                    record.label(other, record.origins(other) + made)

    def _inputs(self, name: str, read: list[Read], stopped: bool) -> Origins:
        if name.endswith("_like") or name.startswith("new_"):  # they read a shape, not numbers
            return ()
        inputs: dict[tuple[Step, str | None], None] = {}
        for one in read[1:] if name == "copy_" else read:
            stops = None
            if one.wants_gradient and (stopped or name == "tensor"):
                stops = "no_grad" if stopped else "detach"
                if self._calls.innermost.stopped is False:
                    self._cut(stops)
            for source, cut in self._record.origins(one.tensor):
                inputs[source, cut or stops] = None
        return tuple(inputs)

    def _detached(self, read: list[Read], results: list[Tensor]) -> None:
        """Let a value flow on without its gradient; that is no step of its own."""
        for one in read[:1]:
            stops = "detach" if one.wants_gradient else None
            origins = tuple((step, cut or stops) for step, cut in self._record.origins(one.tensor))
            if stops:
                self._cut(stops)
            for result in results:
                self._record.label(result, origins)

    def _left(self, name: str, read: list[Read]) -> None:
        """Write down that a value became a number of Python's, if a gradient ends there."""
        ends = self._ending(read, "item")
        if any(cut for _, cut in ends):
            self._record.connect(ends, self._step("tolist" if name == "tolist" else "item"))
            self._cut("item")

    def _to_numpy(self, read: list[Read], array: object) -> None:
        """Let a value flow into a box for what numpy does with it, which nobody sees."""
        record = self._record
        ends = self._ending(read, "numpy")
        if not ends:
            return
        # A new box once the last one has been read from, so that the flow goes in no circle.
        read_from = {step for step, _ in ends} | {source for source, _, _ in record.edges}
        if record.numpy is None or record.numpy in read_from:
            key = ("numpy", record.nth("numpy"))
            record.numpy = Step("operation", key, "numpy", self._calls.innermost.path)
            record.add(record.numpy)
        record.connect(tuple((step, "numpy" if cut else None) for step, cut in ends), record.numpy)
        self._cut("numpy")
        if isinstance(array, np.ndarray):
            record.label(array, ((record.numpy, None),))

    def _from_numpy(self, args: tuple[object, ...], results: list[Tensor]) -> None:
        """Let what numpy gave flow on."""
        source = args[0] if args else None
        if isinstance(source, np.ndarray):
            origins = self._record.origins(source)
        else:  # an array that torch has wrapped itself, or numbers written by hand
            origins = self._record.foreign() if isinstance(source, Tensor) else ()
        for result in results:
            self._record.label(result, origins)

    def _ending(self, read: list[Read], cut: str) -> Origins:
        return tuple(
            (source, before or (cut if one.wants_gradient else None))
            for one in read
            for source, before in self._record.origins(one.tensor)
        )

    def _step(self, label: str) -> Step:
        call = self._calls.innermost
        place = (call.id, label, site())
        key = ("operation", *place, self._record.nth(place))
        step = Step("operation", key, label, call.path)
        self._record.add(step)
        return step

    def _cut(self, reason: str) -> None:
        self._calls.innermost.cut = self._calls.innermost.cut or reason


def _among(value: object, others: list[Tensor]) -> bool:
    return any(value is other for other in others)


def _plain(name: str) -> str:
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    name = name.lstrip("_")
    return _PLAIN.get(name, name)

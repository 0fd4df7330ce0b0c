"""`Repeats`: keeps what a step needs to be run again, and runs it again once numbers go bad.

What is kept is kept no longer than it must: a large gradient of an output goes as soon as the
backward has left its module behind and all that came out of there is finite.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import ref

from torch import Tensor, nn

from soma.audit._measure._boards import Row
from soma.audit._measure._tensors import numeric_tensors
from soma.audit._origin._kept_forward import Cut, Made, Repeatable
from soma.audit._origin._search import find_origin
from soma.audit._parameters._weights import Numbers
from soma.audit._spots import named_modules
from soma.audit._step._hooks import OutputGradientSeen, running_backward
from soma.audit._step._passes import Reading, Taken, version_of
from soma.health._numbers import Origin

if TYPE_CHECKING:
    from soma.audit._step._recorder import Recorder


_LARGE = 1 << 18  # elements; memory for smaller tensors is at hand in any case


class Repeats:
    """Looks for the origin of the first bad number of an audit."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder
        self.found: list[Origin] = recorder.measurements.origins
        self._open: list[Repeatable] = []  # calls on their way, the inner ones last
        self._made: dict[int, tuple[Callable[[], Tensor | None], int, Made]] = {}
        self._held: list[Repeatable] = []  # calls whose large gradients are kept
        self._ticks = 0

    def begin(
        self,
        taken: Taken,
        node: str | None,
        run: Callable[..., object],
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> None:
        """Keep what a forward starts from."""
        call = Repeatable(
            node,
            run,
            [self._kept(one) for one in args],
            {name: self._kept(one) for name, one in named.items()},
        )
        self._ticks += 1
        call.began = self._ticks
        taken.repeatable.append(call)
        self._open.append(call)

    def end(
        self,
        node: str | None,
        value: object,
        name: str = "",
        parts: Sequence[tuple[str, Reading]] = (),
    ) -> None:
        """Know the outputs of the latest call of a node, and keep gradients that come to them.

        Args:
            node: whose call it is; None: of the whole graph.
            value: what it gave.
            name: what goes before the suffixes of its tensors.
            parts: readings of its tensors, which hear of their gradients already.
        """
        call = self._latest(node)
        if call is None or running_backward() != -1:
            return
        self._ticks += 1
        call.ended = self._ticks
        readings = dict(parts)
        for suffix, tensor in numeric_tensors(value):
            if tensor.grad_fn is None:
                continue
            reading = readings.get(suffix)
            suffix = name + suffix
            if reading is not None:
                reading.kept_for += ((call, suffix),)
            else:
                hook = OutputGradientSeen(self._recorder, call, suffix)
                tensor.register_hook(hook)  # type: ignore[no-untyped-call]
            if node is not None:
                made = Made(call, suffix)
                self._made[id(tensor)] = (ref(tensor), version_of(tensor), made)

    def _latest(self, node: str | None) -> Repeatable | None:
        if node is None:
            return self._open[-1] if self._open else None
        while self._open:
            call = self._open.pop()
            if call.node == node:
                return call
        return None

    def _kept(self, value: object) -> object:
        """Return what is kept of an argument."""
        if not isinstance(value, Tensor) or value.grad_fn is None:
            return value
        found = self._made.get(id(value))
        if found is not None and found[0]() is value and found[1] == version_of(value):
            return found[2]
        return Cut(value.detach())

    def gradient_came(
        self, call: Repeatable, suffix: str, gradient: Tensor, row: Row | None = None
    ) -> None:
        """Keep the gradient of an output, and let go of those that are known to be harmless.

        Args:
            call: the call that gave the output.
            suffix: of the output's tensor.
            gradient: what came to it.
            row: the numbers of this gradient as `Gradient` orders them, if it was measured.
        """
        call.add(suffix, gradient)
        arrivals = self._recorder.arrivals
        if gradient.numel() < _LARGE or call.ended is None or not gradient.is_cpu:
            return
        arrivals.read()
        # A sum is the fastest look at all numbers.
        size = float(gradient.sum()) if row is None else row.values[2]
        if arrivals.are_fine and math.isfinite(size):
            for held in self._held:
                if call.ended < held.began:
                    held.gradients.clear()
            self._held = [held for held in self._held if held.gradients and held is not call]
        self._held.append(call)

    def forget(self, taken: Taken) -> None:
        """Let go of all that a step has kept."""
        for call in taken.repeatable:
            call.gradients.clear()
            call.args, call.named = (), {}
        taken.repeatable.clear()
        self._open.clear()
        self._made.clear()
        self._held.clear()
        self._ticks = 0

    def look(self, taken: Taken, numbers: Numbers, *, is_bad: bool = False) -> None:
        """Find where a bad number comes from, while weights are still as the forward had them.

        Args:
            taken: the step.
            numbers: its norms.
            is_bad: it is known that one is there.
        """
        recorder = self._recorder
        if self.found or not taken.repeatable or not (is_bad or _is_bad(taken, numbers)):
            return
        recorder.is_deaf = True
        try:
            units = [spot.id for spot in recorder.spots]
            origin = find_origin(taken.number, taken.repeatable, self._modules(), units)
        finally:
            recorder.is_deaf = False
        self.found.append(origin)

    def _modules(self) -> dict[str, nn.Module]:
        found: dict[str, nn.Module] = {}
        for spot in self._recorder.spots:
            if not spot.path and spot.module is not None:
                for path, module in named_modules(spot.module):
                    found.setdefault(f"{spot.node}/{path}" if path else spot.node, module)
        return found


def _is_bad(taken: Taken, numbers: Numbers) -> bool:
    if numbers.found_inf is not None and numbers.found_inf.values[0] > 0:
        return False  # a gradient scaler leaves this step out
    losses = [row.values[0] for row in taken.loss]
    gradients = [norm for _, row in numbers.left for norm in row.values]
    return not all(map(math.isfinite, [*losses, *gradients]))

"""`Replays`: keeps what a step needs to be run again, and runs it again once numbers go bad.

The memory is the cost: a large gradient of an output is dropped as soon as the backward is past
its module and all gradients that came from there are finite.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from weakref import ref

from torch import Tensor, nn

from soma.audit._measure._boards import Row
from soma.audit._measure._layout import NORM_OF_GRADIENT
from soma.audit._measure._tensors import numeric_tensors
from soma.audit._origin._kept_forward import Cut, KeptForward, Made
from soma.audit._origin._search import find_origin
from soma.audit._spots import Spot, named_modules
from soma.audit._step._arrivals import Arrivals
from soma.audit._step._torch_state import running_backward
from soma.audit._step._trace import Reading, StepTrace, version_of
from soma.health import Origin

# Of a forward and of the suffix of one of its output's tensors: takes the gradient of that.
KeptGradientHook = Callable[[KeptForward, str], Callable[[Tensor], None]]

_LARGE = 1 << 18  # elements; memory for smaller tensors is at hand in any case


class Replays:
    """Looks for the origin of the first number of an audit that is not finite.

    Args:
        spots: what is watched.
        found: where an origin is put; once there is one, nothing is kept any more.
        arrivals: says whether gradients of parameters are finite so far.
        gradient_hook: makes the hook of an output's tensor.
        deaf: has the audit's hooks do nothing, inside a `with`.
    """

    def __init__(
        self,
        spots: Sequence[Spot],
        found: list[Origin],
        arrivals: Arrivals,
        *,
        gradient_hook: KeptGradientHook,
        deaf: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.found = found
        self._spots = spots
        self._arrivals = arrivals
        self._gradient_hook = gradient_hook
        self._deaf = deaf
        self._open: list[KeptForward] = []  # those that run, the inner ones last
        self._made: dict[int, tuple[Callable[[], Tensor | None], int, Made]] = {}
        self._held: list[KeptForward] = []  # those whose large gradients are kept
        self._ticks = 0  # beginnings and ends of forwards in this step

    @property
    def is_inside(self) -> bool:
        """Whether a forward that is kept has begun and not ended."""
        return bool(self._open)

    def begin(
        self,
        step: StepTrace,
        node: str | None,
        run: Callable[..., object],
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> None:
        """Keep what a forward starts from."""
        call = KeptForward(
            node,
            run,
            [self._kept(one) for one in args],
            {name: self._kept(one) for name, one in named.items()},
        )
        self._ticks += 1
        call.began = self._ticks
        step.forwards.append(call)
        self._open.append(call)

    def end(
        self,
        node: str | None,
        value: object,
        name: str = "",
        parts: Sequence[tuple[str, Reading]] = (),
    ) -> None:
        """Take the outputs of the latest forward of a node, and keep gradients that come to them.

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
                tensor.register_hook(self._gradient_hook(call, suffix))  # type: ignore[no-untyped-call]
            if node is not None:
                made = Made(call, suffix)
                self._made[id(tensor)] = (ref(tensor), version_of(tensor), made)

    def _latest(self, node: str | None) -> KeptForward | None:
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
        self, call: KeptForward, suffix: str, gradient: Tensor, row: Row | None = None
    ) -> None:
        """Keep the gradient of an output, and drop those after which all has been finite.

        Args:
            call: the call that gave the output.
            suffix: of the output's tensor.
            gradient: what came to it.
            row: its numbers as `Gradient` orders them, if it was measured.
        """
        call.add(suffix, gradient)
        if gradient.numel() < _LARGE or call.ended is None or not gradient.is_cpu:
            return
        self._arrivals.read()
        # A sum is the fastest look at all numbers.
        size = float(gradient.sum()) if row is None else row.values[NORM_OF_GRADIENT]
        if self._arrivals.are_fine and math.isfinite(size):
            for held in self._held:
                if call.ended < held.began:
                    held.gradients.clear()
            self._held = [held for held in self._held if held.gradients and held is not call]
        self._held.append(call)

    def forget(self, step: StepTrace) -> None:
        """Let go of all that a step has kept."""
        for call in step.forwards:
            call.gradients.clear()
            call.args, call.named = (), {}
        step.forwards.clear()
        self._open.clear()
        self._made.clear()
        self._held.clear()
        self._ticks = 0

    def look(self, step: StepTrace, *, is_bad: bool = False) -> None:
        """Find where a bad number comes from, while weights are still as the forward had them.

        Args:
            step: the step under way.
            is_bad: it is known that one is there.
        """
        if self.found or not step.forwards or not (is_bad or _is_bad(step)):
            return
        with self._deaf():
            units = [spot.id for spot in self._spots]
            origin = find_origin(step.number, step.forwards, self._modules(), units)
        self.found.append(origin)

    def _modules(self) -> dict[str, nn.Module]:
        found: dict[str, nn.Module] = {}
        for spot in self._spots:
            if not spot.path and spot.module is not None:
                for path, module in named_modules(spot.module):
                    found.setdefault(f"{spot.node}/{path}" if path else spot.node, module)
        return found


def _is_bad(step: StepTrace) -> bool:
    found_inf = step.norms.found_inf
    if found_inf is not None and found_inf.values[0] > 0:
        return False  # a gradient scaler leaves this step out
    losses = [row.values[0] for row in step.loss]
    return not (all(map(math.isfinite, losses)) and step.norms.are_fine)

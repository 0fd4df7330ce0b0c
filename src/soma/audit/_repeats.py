"""`Repeats`: keeps what a step needs to be run again, and runs it again once numbers go bad."""

import math
from typing import TYPE_CHECKING

from torch import nn

from soma.audit._hooks import OutputGradientSeen, running_backward
from soma.audit._origin import find_origin
from soma.audit._passes import Taken
from soma.audit._spots import named_modules
from soma.audit._tensors import numeric_tensors
from soma.audit._weights import Numbers

if TYPE_CHECKING:
    from soma.audit._recorder import Recorder


class Repeats:
    """Looks for the origin of the first bad number of an audit."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder

    def keep_gradients(self, taken: Taken, value: object, name: str = "") -> None:
        """Keep the gradients that will come to an output of the latest forward."""
        if not taken.repeatable or running_backward() != -1:
            return
        call = taken.repeatable[-1]
        for suffix, tensor in numeric_tensors(value):
            if tensor.requires_grad and not tensor.is_leaf:
                hook = OutputGradientSeen(self._recorder, call, name + suffix)
                tensor.register_hook(hook)  # type: ignore[no-untyped-call]

    def look(self, taken: Taken, numbers: Numbers) -> None:
        """Find where a bad number comes from, while weights are still as the forward had them."""
        recorder = self._recorder
        measurements = recorder.measurements
        if measurements.origins or not taken.repeatable or not _is_bad(taken, numbers):
            return
        recorder.is_deaf = True
        try:
            units = [spot.id for spot in recorder.spots]
            origin = find_origin(taken.number, taken.repeatable, self._modules(), units)
        finally:
            recorder.is_deaf = False
        measurements.origins.append(origin)

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

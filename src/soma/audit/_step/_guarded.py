"""`Guarded`: what every hook of an audit goes through, so that training never notices it.

Nothing is raised into the user's code, no gradient is recorded of what an audit computes, and
hooks of several threads take turns.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from time import perf_counter
from typing import ParamSpec

import torch
from torch.utils._python_dispatch import _disable_current_modes

from soma.audit._spots import Spot
from soma.errors import SomaWarning
from soma.health import Measurements

P = ParamSpec("P")


class Guarded:
    """Calls functions without gradients, one at a time, and notes what they raise."""

    def __init__(self) -> None:
        self.spots: list[Spot] = []
        self.measurements = Measurements()
        self.is_deaf = False  # hooks do nothing: the audit is over, or runs a step again itself
        self.grad_mode = True  # of the caller; `guarded` switches gradients off
        self.spent = 0.0  # seconds that the audit itself took since a step has ended
        self._lock = RLock()
        self._depth = 0

    def guarded(
        self, spot: int | None, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Call a function so that nothing that goes wrong in it reaches the user's training."""
        began = perf_counter()
        was_enabled = torch.is_grad_enabled()
        with self._lock:
            if not self._depth:
                self.grad_mode = was_enabled
            self._depth += 1
            # `no_grad` does the same, and takes longer than many of these calls.
            torch._C._set_grad_enabled(False)
            try:
                # Whoever follows the user's operations is not to see ours.
                with torch._C.DisableTorchFunction():
                    if torch._C._len_torch_dispatch_stack():  # modes, as one that counts them
                        with _disable_current_modes():
                            function(*args, **kwargs)
                    else:
                        function(*args, **kwargs)
            except Exception as error:
                self._failed(spot, error)
            finally:
                torch._C._set_grad_enabled(was_enabled)
                self._depth -= 1
                if not self._depth:
                    self.spent += perf_counter() - began

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Have all hooks do nothing inside."""
        was_deaf, self.is_deaf = self.is_deaf, True
        try:
            yield
        finally:
            self.is_deaf = was_deaf

    def _failed(self, spot: int | None, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        if spot is not None and self.spots[spot].unobserved is None:
            self.spots[spot].unobserved = "error"
        where = f" at `{self.spots[spot].id}`" if spot is not None else ""
        if not self.measurements.notes:
            warnings.warn(
                f"the audit could not measure{where}, and training goes on: {said}",
                SomaWarning,
                stacklevel=4,
            )
        if len(self.measurements.notes) < 20:
            self.measurements.notes.append(f"not measured{where}: {said}")

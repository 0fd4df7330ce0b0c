"""What is kept of a forward so that it can be run again: inputs, generators, gradients."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor

_DEVICES = ("cpu", "cuda")


class Repeatable:
    """A forward, and the gradients that came back to its output."""

    def __init__(self, node: str | None, run: Callable[[], object], given: object) -> None:
        self.node = node  # the module that was called; None: the whole graph
        self.run = run
        self.given = given
        self.gradients: dict[str, Tensor] = {}  # by the suffix of the output's tensor
        self._generator = torch.get_rng_state()
        on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        self._on_gpu = torch.cuda.get_rng_state() if on_gpu else None
        self._autocast = [
            (one, torch.get_autocast_dtype(one), torch.is_autocast_cache_enabled())
            for one in _DEVICES
            if torch.is_autocast_enabled(one)
        ]

    def add(self, suffix: str, gradient: Tensor) -> None:
        """Keep a gradient; those of several backwards add up."""
        known = self.gradients.get(suffix)
        self.gradients[suffix] = gradient.detach() if known is None else known + gradient.detach()

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Draw the same random numbers inside, and compute in the same precision."""
        with ExitStack() as stack:
            stack.enter_context(torch.enable_grad())
            for device, dtype, caches in self._autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=caches))
            torch.set_rng_state(self._generator)
            if self._on_gpu is not None:
                torch.cuda.set_rng_state(self._on_gpu)
            yield

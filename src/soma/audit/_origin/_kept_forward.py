"""What is kept of a forward so that it can be run again: inputs, generators, gradients.

An input that is an earlier call's output is not kept but made again: what is held until a step
ends is memory that the step's own backward cannot use.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True)
class Made:
    """An input that an earlier call gave."""

    by: "KeptForward"
    suffix: str  # of the tensor in its output


@dataclass(frozen=True, slots=True)
class Cut:
    """An input that something outside of all calls gave, without the graph behind it."""

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a second run, and those of their tensors that gradients can come to."""

    args: tuple[object, ...]
    named: dict[str, object]
    leaves: list[Tensor]


class KeptForward:
    """A forward, and the gradients that came back to its output.

    Args:
        node: the module that was called; None: the whole graph.
        run: what was called.
        args: with what; tensors that were computed as `Made` or `Cut`.
        named: and with what by name.
    """

    __slots__ = (
        "_autocast",
        "_generator",
        "_on_gpu",
        "args",
        "began",
        "ended",
        "gradients",
        "named",
        "node",
        "outputs",
        "run",
    )

    def __init__(
        self,
        node: str | None,
        run: Callable[..., object],
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> None:
        self.node = node
        self.run = run
        self.args = args
        self.named = named
        self.began = 0  # in the order of all beginnings and ends of a step
        self.ended: int | None = None
        self.gradients: dict[str, Tensor] = {}  # by the suffix of the output's tensor
        self.outputs: dict[str, Tensor] = {}  # of the second run
        self._generator = torch.default_generator.get_state()
        self._on_gpu = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
        self._autocast = [
            (one, torch.get_autocast_dtype(one), torch.is_autocast_cache_enabled())
            for one in _DEVICES
            if torch.is_autocast_enabled(one)
        ]

    def add(self, suffix: str, gradient: Tensor) -> None:
        """Keep a gradient; those of several backwards add up."""
        known = self.gradients.get(suffix)
        self.gradients[suffix] = gradient.detach() if known is None else known + gradient.detach()

    def given(self) -> Given:
        """Return the arguments once more, cut off from whatever they were made by."""
        leaves: list[Tensor] = []
        args = tuple(_again(one, leaves) for one in self.args)
        named = {name: _again(one, leaves) for name, one in self.named.items()}
        return Given(args, named, leaves)

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


def _again(value: object, leaves: list[Tensor]) -> object:
    if isinstance(value, Made):
        value = value.by.outputs[value.suffix]
    elif not isinstance(value, Cut):
        return value
    else:
        value = value.tensor
    leaves.append(value.detach().requires_grad_())
    with torch.enable_grad():
        return leaves[-1].clone()  # a leaf may not be written to

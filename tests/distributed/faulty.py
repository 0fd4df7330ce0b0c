"""Filters and optimizers that break on a worker, and in no other process."""

import os
import signal
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD

from soma import DifferentiableFilter, Filter

BAD = torch.full((24, 5), torch.nan)


def fault(kind: str) -> None:
    """Break this process in one of four ways."""
    match kind:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "sleep":
            time.sleep(60)
        case "raise":
            raise ValueError("a bug of the user")


class Breaking(torch.autograd.Function):
    """The identity, which breaks when a gradient passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: str) -> Tensor:
        ctx.kind = kind
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        fault(ctx.kind)
        return gradients[0], None


class Faulty(DifferentiableFilter):
    """A linear layer that breaks in a forward or backward of `BAD` data."""

    def __init__(self, where: str, kind: str) -> None:
        super().__init__(where=where, kind=kind)

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Linear(input_shape[-1], 4)

    def forward(self, x: Any, state: object = None) -> Any:
        kind = self.kind if bool(torch.isnan(x).any()) else ""
        if self.where == "forward":
            fault(kind)
        output = self._module(x)
        return Breaking.apply(output, kind if self.where == "backward" else ""), {}


class FaultyPlain(Filter):
    """A plain filter that breaks in `fit` or `forward`."""

    def __init__(self, where: str, kind: str) -> None:
        super().__init__(where=where, kind=kind)

    def fit(self, x: object, y: object = None) -> float:
        fault(self.kind if self.where == "fit" else "")
        return 2.0

    def forward(self, x: Any, state: float) -> Any:
        fault(self.kind if self.where == "forward" else "")
        return x * state


class Twice(SGD):
    """Steps once, and breaks in the second step on a worker."""

    kind = ""

    def step(self, closure: Any = None) -> Any:
        self.taken = getattr(self, "taken", 0) + 1
        if self.taken > 1 and is_there(self):
            fault(self.kind)
        return super().step(closure)


def is_there(optimizer: SGD) -> bool:
    """Whether the weights of an optimizer are in this process."""
    return all(not one.is_meta for one in optimizer.param_groups[0]["params"])


class KilledStep(Twice):
    """Kills its process."""

    kind = "kill"


class StoppedStep(Twice):
    """Stops its process."""

    kind = "stop"


class RaisingStep(Twice):
    """Raises an error."""

    kind = "raise"


class Untold(Exception):
    """An exception without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Answering(Filter):
    """A plain filter that calls what it is told to, and gives what that returns."""

    def __init__(self, call: str) -> None:
        super().__init__(call=call)

    def forward(self, x: object, state: object) -> object:
        match self.call:
            case "exit":
                raise SystemExit(3)
            case "untold":
                raise Untold
            case "interrupt":
                raise KeyboardInterrupt
        return lambda: x

"""`FlowMode`: hands every torch function that runs in a turn to the turn's record.

Which functions say nothing about the flow is here; what the others mean, in `_operation.py`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from soma.audit._flow._turn import Turn

# Getters that give a tensor with the same numbers; all others tell shapes, types, places.
_GETTERS = frozenset({"H", "T", "data", "imag", "mH", "mT", "real"})

# What they return flows on as it was, or is no part of the flow.
_SILENT = frozenset(
    {
        "__deepcopy__",
        "__dlpack__",
        "__reduce_ex__",
        "__set__",
        "_set_grad_enabled",
        "as_subclass",
        "backward",
        "dim",
        "register_hook",
        "requires_grad_",
        "retain_grad",
        "set_",
        "size",
    }
)


class FlowMode(TorchFunctionMode):
    """Records what torch functions do on this thread, inside a `with`."""

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._turn = turn

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Iterable[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        """Run `func` as it is, and note what went in and what came out."""
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = getattr(getattr(func, "__self__", None), "__name__", "")
            if name not in _GETTERS:
                return func(*args, **kwargs)
        if name in _SILENT or not self._turn.sees():
            return func(*args, **kwargs)
        given = self._turn.given(args, kwargs)
        answer = func(*args, **kwargs)
        self._turn.ran(name, given, args, answer)
        return answer

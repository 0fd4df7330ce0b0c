"""`OperationWatch`: looks at each operation for the first result that is not finite.

Operations are seen below autograd, in forward and in backward. Which module a backward's
operation belongs to is told by the number that autograd gave to its node in the forward.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from soma.audit._measure._tensors import numeric_tensors, plain

Value = Literal["nan", "inf"]

# These put in a constant that somebody has chosen, as masks do.
_MASKS = frozenset(
    {
        "fill",
        "full",
        "full_like",
        "index_fill",
        "masked_fill",
        "masked_scatter",
        "new_full",
        "scalar_tensor",
        "where",
    }
)
# What these return has not been written yet.
_UNWRITTEN = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})


@dataclass(frozen=True, slots=True)
class Birth:
    """An operation that made numbers which are not finite of ones that are."""

    place: str  # id of the innermost module, `node/sub.module`; empty: outside of all
    operation: str
    value: Value
    given: str  # for people: the range of what went in


class OperationWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects births inside a `with`."""

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.births: list[Birth] = []
        self._modules = modules
        self._inside: list[str] = []
        self._numbers: list[int] = []  # where in autograd's count another module took over
        self._places: list[str] = []
        self._hooks = ExitStack()

    def __enter__(self) -> "OperationWatch":
        for place, module in self._modules.items():
            if isinstance(module, torch.jit.ScriptModule):
                continue
            before = module.register_forward_pre_hook(_Entered(self, place), prepend=True)
            after = module.register_forward_hook(_Left(self), always_call=True)
            self._hooks.callback(before.remove)
            self._hooks.callback(after.remove)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: Any) -> None:
        with self._hooks:
            super().__exit__(*raised)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        function: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operation and look at what it made."""
        name = _plain_name(function)
        if name in _UNWRITTEN:
            return function(*args, **(kwargs or {}))
        given = [one for _, one in numeric_tensors([list(args), kwargs or {}])]
        # What is written in place is gone afterwards.
        had = worst(given)
        span = _span(given)
        answer = function(*args, **(kwargs or {}))
        made = worst(one for _, one in numeric_tensors(answer))
        is_birth = made is not None and (had is None or (made == "nan" and had == "inf"))
        if is_birth and not (name in _MASKS and made == "inf"):
            assert made is not None
            place, operation = self._where(name)
            self.births.append(Birth(place, operation, made, span))
        return answer

    def went_to(self, place: str | None) -> None:
        """Note that a module begins, or with None that the innermost one ends."""
        if place is not None:
            self._inside.append(place)
        elif self._inside:
            self._inside.pop()
        self._numbers.append(torch._C._autograd._get_sequence_nr())
        self._places.append(self._inside[-1] if self._inside else "")

    def _where(self, name: str) -> tuple[str, str]:
        node = torch._C._current_autograd_node()
        if node is None:
            return self._inside[-1] if self._inside else "", name
        at = bisect_right(self._numbers, node._sequence_nr()) - 1
        return self._places[at] if at >= 0 else "", _operation_of(node.name())


class _Entered:
    def __init__(self, watched: OperationWatch, place: str) -> None:
        self._watched = watched
        self._place = place

    def __call__(self, module: nn.Module, given: object) -> None:
        self._watched.went_to(self._place)


class _Left:
    def __init__(self, watched: OperationWatch) -> None:
        self._watched = watched

    def __call__(self, module: nn.Module, given: object, output: object) -> None:
        self._watched.went_to(None)


def worst(tensors: Iterable[Tensor]) -> Value | None:
    """Return whether any number is NaN, else whether any is infinite; None: all are finite."""
    found: Value | None = None
    for tensor in tensors:
        x = plain(tensor)
        if x is None or not x.numel() or bool(x.isfinite().all()):
            continue
        if bool(x.isnan().any()):
            return "nan"
        found = "inf"
    return found


def restored(modules: Iterable[nn.Module]) -> Callable[[], None]:
    """Return a call that puts buffers and plain attributes of modules back to what they are now."""
    kept: list[tuple[nn.Module, dict[str, Any], dict[str, Tensor | None]]] = []
    for module in modules:
        plainly = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, bool | int | float | str | tuple | None)
        }
        buffers = {
            name: None if one is None else one.detach().clone()
            for name, one in module._buffers.items()
        }
        kept.append((module, plainly, buffers))
    objects = [(module, dict(module._buffers)) for module, _, _ in kept]

    def restore() -> None:
        for (module, plainly, buffers), (_, same) in zip(kept, objects, strict=True):
            vars(module).update(plainly)
            for name, value in buffers.items():
                buffer = same[name]
                if buffer is not None and value is not None and not _equal(buffer, value):
                    buffer.copy_(value)
                module._buffers[name] = buffer

    return restore


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def _plain_name(function: Any) -> str:
    return str(function.overloadpacket.__name__).strip("_")


def _operation_of(node: str) -> str:
    """Return the operation that an autograd node is the backward of, `SqrtBackward0` of `sqrt`."""
    name = re.sub(r"Backward\d*$", "", node)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _span(tensors: Sequence[Tensor]) -> str:
    ranges = []
    for tensor in tensors[:3]:
        x = plain(tensor)
        if x is not None and x.numel():
            low, high = torch.aminmax(x)
            ranges.append(f"{low.item():.4g} to {high.item():.4g}")
    return ", ".join(ranges)

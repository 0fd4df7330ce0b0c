"""Keeps inputs from being changed by the filters that read them.

What somebody else still reads (a sibling, the caller) is handed out so that it cannot be
written to: lists and dicts as copies, arrays as read-only views. A tensor cannot be
protected, so its version is compared afterwards, and what is passed on of its memory is copied:
the next node may be the only reader of that, and write to it.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from sys import modules
from typing import Any

from soma._extras import loaded
from soma.errors import InputChanged

_CHANGED = (
    "a tensor was changed in place by a node that only reads it; the caller or another node has "
    "it too. Work on a copy: `x = x.clone()`."
)
_SAFE = frozenset({bool, int, float, complex, str, bytes, type(None)})


def without_gradients() -> AbstractContextManager[object]:
    """Record no gradients inside; nothing to do while this process has not loaded torch."""
    torch = loaded("torch")
    return torch.no_grad() if torch else nullcontext()


class Protected:
    """A function whose input stays as it is, whatever the function does."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[object], object]) -> None:
        self.function = function

    def __call__(self, x: Any) -> object:
        # One tensor in, another one out is what models do all day, so that comes first.
        plain = getattr(modules.get("torch"), "Tensor", None)
        if type(x) is not plain or x.is_inference():
            return self._call_protected(x)
        version = x._version
        answer = self.function(x)
        if x._version != version:
            raise InputChanged(_CHANGED)
        if type(answer) is plain and _memory(answer) != _memory(x):
            return answer
        return _own(answer, {_memory(x)})

    def _call_protected(self, x: object) -> object:
        before = [(tensor, tensor._version) for tensor in _tensors(x)]
        answer = self.function(protected(x))
        if any(tensor._version != version for tensor, version in before):
            raise InputChanged(_CHANGED)
        return _own(answer, {_memory(tensor) for tensor, _ in before}) if before else answer


def protected(value: Any) -> object:
    """Return `value` such that writing to it reaches nobody else."""
    kind = type(value)
    if kind is list:
        return [part if type(part) in _SAFE else protected(part) for part in value]
    if kind is tuple:
        return tuple(part if type(part) in _SAFE else protected(part) for part in value)
    if kind is dict:
        return {key: protected(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named one
        return value._make(map(protected, value))
    if isinstance(value, list | dict | set):
        return _copied(value)
    numpy, torch = loaded("numpy"), loaded("torch")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _read_only(value)
    if torch is not None and isinstance(value, torch.Tensor) and value.is_inference():
        return value.clone()  # it keeps no version that could tell of a change
    return value


def _copied(value: Any) -> object:
    """Copy a set, or a list or dict of some other class than the plain one."""
    other = copy(value)
    if isinstance(value, list):
        other[:] = map(protected, value)
    elif isinstance(value, dict):
        for key, part in value.items():
            other[key] = protected(part)
    return other


def _read_only(array: Any) -> object:
    view = array.view()
    view.flags.writeable = False
    if hasattr(view, "unshare_mask"):  # a masked array, whose mask is another array
        view.unshare_mask()
    return view


def _own(answer: Any, memories: set[int]) -> object:
    """Return `answer` with its own copy of every tensor that lies in one of `memories`."""
    kind = type(answer)
    if kind is tuple or kind is list:
        return kind(part if type(part) in _SAFE else _own(part, memories) for part in answer)
    if kind is dict:
        return {key: _own(part, memories) for key, part in answer.items()}
    numpy, torch = loaded("numpy"), loaded("torch")
    if torch is not None and isinstance(answer, torch.Tensor):
        return answer.clone() if _memory(answer) in memories else answer
    if numpy is not None and isinstance(answer, numpy.ndarray):
        base = answer.base
        while isinstance(base, numpy.ndarray):
            base = base.base
        if torch is not None and isinstance(base, torch.Tensor) and _memory(base) in memories:
            return _read_only(answer)
    return answer


def _memory(tensor: Any) -> int:
    try:
        return tensor.untyped_storage().data_ptr()  # type: ignore[no-any-return]
    except RuntimeError:  # sparse tensors, and those that wrap others, have no storage
        return id(tensor)


def _tensors(value: object) -> Iterator[Any]:
    torch = loaded("torch")
    if torch is None:
        return
    if isinstance(value, torch.Tensor):
        if not value.is_inference():  # such tensors keep no version
            yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            if type(part) not in _SAFE:
                yield from _tensors(part)

"""What a traced turn asks of values: which tensors are in them, and whether one was written to."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import numpy as np
from torch import Tensor

_DEEPEST = 12  # containers in containers


def tensors_in(value: object, depth: int = 0) -> Iterator[Tensor]:
    """Give the tensors in a value: itself, or those in containers and dataclasses."""
    if isinstance(value, Tensor):
        yield value
    elif depth >= _DEEPEST or value is None or isinstance(value, str | int | float | np.ndarray):
        return
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from tensors_in(part, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):  # a `PackedSequence` is a tuple
        for part in value:
            yield from tensors_in(part, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tensors_in(getattr(value, field.name, None), depth + 1)


def arrays_in(value: object, depth: int = 0) -> Iterator[np.ndarray]:
    """Give the arrays in a value and in its containers."""
    if isinstance(value, np.ndarray):
        yield value
    elif depth < _DEEPEST and isinstance(value, Mapping):
        for part in value.values():
            yield from arrays_in(part, depth + 1)
    elif depth < _DEEPEST and isinstance(value, list | tuple):
        for part in value:
            yield from arrays_in(part, depth + 1)


def version(tensor: Tensor) -> int | None:
    """Return how often a tensor was written to; None for one that does not count."""
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode
        return None


def memory(tensor: Tensor) -> int | None:
    """Return where a tensor's elements begin, the same for all its views; None: nowhere."""
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):  # sparse, fake, on the meta device
        return None


def is_foreign(tensor: Tensor) -> bool:
    """Whether a tensor lies over memory that torch does not own, such as an array's."""
    try:
        return not tensor.untyped_storage().resizable()
    except (RuntimeError, NotImplementedError):
        return False


def shape_of(tensors: list[Tensor]) -> tuple[int, ...] | None:
    """Return the shape of the first tensor, if there is one that has a shape."""
    try:
        return tuple(int(size) for size in tensors[0].shape) if tensors else None
    except (RuntimeError, NotImplementedError, TypeError):  # nested, symbolic
        return None

"""What numeric lists and arrays hold: the numbers, as torch can read them, and their shapes."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from soma.errors import InvalidInput

Shape = tuple[int, ...]
Shapes = Shape | dict[str, "Shapes"] | None

_MOST_AXES = 32
_LARGEST = np.iinfo(np.int64).max


def shape_of(value: object) -> Shapes:
    """Return the shape of one sample, without the batch axis, as `build_module` gets it.

    A mapping gives a dict of shapes. None where there is no shape, as for text.
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return tuple(int(size) for size in shape[1:])
    if isinstance(value, Mapping):
        return {key: shape_of(part) for key, part in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(part, Tensor) for part in value):
            shapes = {tuple(part.shape) for part in value}
            return shapes.pop() if len(shapes) == 1 else None
        array = numbers_of(value)
        return None if array is None else array.shape[1:]
    return None


def numbers_of(value: object) -> "np.ndarray | None":
    """Return what holds numbers, and no tensors, as an array of them; None for the rest."""
    if isinstance(value, list | tuple):
        axes = _axes(value)
        # NumPy would take for ever over a list that holds itself twice.
        if axes > _MOST_AXES or _holds_tensors(value, axes):
            return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):  # rows of several lengths, for instance
        return None
    return array if array.dtype.kind in "fiubc" else None


def readable(array: "np.ndarray") -> "np.ndarray":
    """Return an array of numbers as torch can read it: native, not reversed, no long doubles."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    known = np.dtype(f"{kind}{min(size, 16 if kind == 'c' else 8)}")
    # The characters tell apart what C calls long and long long: torch knows one of them only.
    if array.dtype.char != known.char or not array.dtype.isnative:
        array = array.astype(known)
    strange = any(stride < 0 or stride % array.itemsize for stride in array.strides)
    return array.copy() if strange else array


def as_int64(array: "np.ndarray") -> "np.ndarray":
    """Return integers as int64, to look rows up or as classes.

    Raises:
        InvalidInput: one of them does not fit.
    """
    if array.dtype.kind == "u" and array.size and array.max() > _LARGEST:
        raise InvalidInput(
            f"integers up to {array.max()} came, and int64 ends at {_LARGEST}. Number the "
            "entries from 0, or give floats where the size of the number counts."
        )
    return readable(array.astype(np.int64, copy=False))


def _axes(value: object) -> int:
    axes = 0
    while isinstance(value, list | tuple) and axes <= _MOST_AXES:
        axes += 1
        value = value[0] if value else None
    return axes


def _holds_tensors(value: Sequence[object], axes: int) -> bool:
    kinds = set(map(type, value))
    return any(issubclass(kind, Tensor) for kind in kinds) or (
        axes > 1
        and any(_holds_tensors(row, axes - 1) for row in value if isinstance(row, list | tuple))
    )

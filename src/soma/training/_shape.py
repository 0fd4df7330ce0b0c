"""Shapes without the batch axis, as `build_module` gets them."""

from collections.abc import Mapping

import numpy as np

Shape = tuple[int, ...]
Shapes = Shape | dict[str, "Shapes"] | None


def shape_of(value: object) -> Shapes:
    """Return the shape of one sample: of tensors, arrays, frames, numeric lists.

    A mapping gives a dict of shapes. None where there is no shape, as for text.
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return tuple(int(size) for size in shape[1:])
    if isinstance(value, Mapping):
        return {key: shape_of(part) for key, part in value.items()}
    if isinstance(value, list):
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, RuntimeError):  # rows of several lengths, or no numbers
            return None
        return array.shape[1:] if array.dtype.kind in "fiubc" else None
    return None

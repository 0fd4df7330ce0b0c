"""Takes rows out of data of any kind: tensors, arrays, lists, frames, mappings of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from soma.core import Inputs
from soma.engine import describe
from soma.errors import InvalidInput

Index = slice | Tensor


def take(value: object, index: Index) -> object:
    """Return the rows of `value` that `index` names: a slice, or a tensor of positions.

    Raises:
        InvalidInput: the value has no rows.
    """
    if isinstance(value, Tensor):
        if isinstance(index, slice):
            return value[index]
        positions = index.to(value.device)
        # Several times as fast for rows that are large, but it forgets other memory formats.
        whole = value.is_contiguous() or value.is_sparse
        return value.index_select(0, positions) if whole else value[positions]
    if isinstance(value, Inputs):
        return Inputs({root: take(part, index) for root, part in value.items()})
    if isinstance(value, Mapping):
        return {key: take(part, index) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return value[index if isinstance(index, slice) else index.numpy()]
    if isinstance(value, list):
        return value[index] if isinstance(index, slice) else [value[i] for i in index.tolist()]
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(take(part, index) for part in value)
    rows: Any = index if isinstance(index, slice) else index.numpy()
    if hasattr(value, "iloc"):  # pandas
        return value.iloc[rows]
    if isinstance(getattr(value, "shape", None), tuple):  # polars, sparse matrices
        return value[rows]  # type: ignore[index]
    raise InvalidInput(
        f"rows are to be taken from {describe(value)}, which has none. Give tensors, arrays, "
        "lists or frames, or pass a DataLoader that makes the batches itself."
    )

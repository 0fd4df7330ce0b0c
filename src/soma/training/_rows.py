"""Takes rows out of data of any kind: tensors, arrays, lists, frames, mappings of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from soma.core import Inputs
from soma.engine import describe
from soma.errors import InvalidInput
from soma.training._convert import parts_of, with_parts

Index = slice | Tensor


def positions(rows: object, count: int) -> Index:
    """Return what names some of `count` rows as a slice, or as a tensor of positions from 0.

    Args:
        rows: a slice, a mask of one boolean a row, or positions, of which negative ones count
            from the end.

    Raises:
        InvalidInput: it is none of these, or does not fit the rows.
    """
    if isinstance(rows, slice):
        forward = rows.step is None or rows.step > 0
        return rows if forward else torch.tensor(range(*rows.indices(count)), dtype=torch.int64)
    if not isinstance(rows, list | Tensor | np.ndarray):
        raise _no_rows(repr(rows))
    try:
        array = np.asarray(rows.detach().cpu() if isinstance(rows, Tensor) else rows)
    except (ValueError, TypeError):  # lists of several lengths, for instance
        raise _no_rows(describe(rows)) from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        raise _no_rows(describe(rows))
    if array.dtype.kind == "b":
        if len(array) != count:
            raise InvalidInput(
                f"the mask has {len(array)} entries and there are {count} rows; give one boolean "
                "for each row, or the positions of the rows wanted."
            )
        return torch.from_numpy(array.nonzero()[0])
    beyond = array[(array < -count) | (array >= count)]
    if beyond.size:
        raise InvalidInput(
            f"position {beyond[0]} is outside the {count} rows; give positions from {-count} to "
            f"{count - 1}, negative ones counting from the end."
        )
    array = array.astype(np.int64)
    array[array < 0] += count
    return torch.from_numpy(array)


def take(value: object, index: Index) -> object:
    """Return the rows of `value` that `index` names: a slice, or a tensor of positions.

    Rows of tensors and arrays are copies, so that a module that works in place writes to them
    and not to the data.

    Raises:
        InvalidInput: the value has no rows.
    """
    if isinstance(value, Tensor) and value.ndim:
        if isinstance(index, slice):
            return value[index].clone()
        wanted = index.to(value.device)
        # Several times as fast for rows that are large, but it forgets other memory formats.
        whole = value.is_contiguous() or value.is_sparse
        return value.index_select(0, wanted) if whole else value[wanted]
    if isinstance(value, Inputs):
        return Inputs({root: take(part, index) for root, part in value.items()})
    if isinstance(value, Mapping):
        parts = parts_of(value)
        taken = {id(part): take(part, index) for part in parts[: len(value)]}
        # An output class shows its entries as attributes as well.
        return with_parts(value, [taken.get(id(part), part) for part in parts])
    if isinstance(value, np.ndarray) and value.ndim:
        return value[index].copy() if isinstance(index, slice) else value[index.numpy()]
    if isinstance(value, list):
        return value[index] if isinstance(index, slice) else [value[i] for i in index.tolist()]
    if isinstance(value, tuple):
        return with_parts(value, [take(part, index) for part in value])
    rows: Any = index if isinstance(index, slice) else index.numpy()
    if hasattr(value, "iloc"):  # pandas
        return value.iloc[rows]
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:  # polars, sparse matrices
        return value[rows]  # type: ignore[index]
    raise InvalidInput(
        f"rows are to be taken from {describe(value)}, which has none. Give tensors, arrays, "
        "lists or frames, or pass a DataLoader that makes the batches itself."
    )


def _no_rows(what: str) -> InvalidInput:
    return InvalidInput(
        f"{what} came for the rows; a slice, a mask of one boolean for each row, or positions as "
        "a tensor, an array or a list, is wanted."
    )

"""Tensors and lists of numbers as NumPy arrays, for libraries that read nothing else."""

from typing import Any

import numpy as np

from soma._extras import loaded


def to_arrays(value: object) -> object:
    """Return tensors and lists of numbers as arrays, alone or in a dict; the rest as it is.

    The array of a tensor shares its memory and is read-only.
    """
    if _is_tensor(value):
        return _outside_torch(value)
    if isinstance(value, dict):
        return {key: to_arrays(part) for key, part in value.items()}
    return _numbers(value) if isinstance(value, list | tuple) else value


def _numbers(rows: list[object] | tuple[object, ...]) -> object:
    first: object = rows
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if isinstance(first, str | bytes | dict):  # texts and records
        return rows
    parts = [to_arrays(row) for row in rows] if _is_tensor(first) else rows
    try:
        array = np.asarray(parts)
    except (ValueError, OverflowError):  # rows of several lengths
        return parts
    return array if array.dtype.kind in "biufc" else parts


def _is_tensor(value: object) -> bool:
    torch = loaded("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _outside_torch(tensor: Any) -> np.ndarray[Any, Any]:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        array: np.ndarray[Any, Any] = plain.numpy()
    except TypeError:  # bfloat16 and the 8-bit floats
        array = plain.to_dense().float().numpy()
    array.flags.writeable = False
    return array

"""Values into tensors and back, at the border of a module.

A module takes tensors. Numeric lists and arrays become tensors of the module's own dtype
and device; tensors are the user's and are left alone. In inference a module's output goes
back to the kind of value that the graph was given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

Kind = Literal["tensor", "array", "list"]
KINDS: tuple[Kind, ...] = ("tensor", "array", "list")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What tensors a module is given: integers stay integers where it looks rows up."""

    dtype: torch.dtype
    device: torch.device
    keeps_integers: bool


def wanted_by(module: nn.Module) -> Wanted:
    """Read from a module's first floating weight what it computes with."""
    tensors = [*module.parameters(), *module.buffers()]
    floating = next((one for one in tensors if one.is_floating_point()), None)
    return Wanted(
        torch.get_default_dtype() if floating is None else floating.dtype,
        tensors[0].device if tensors else torch.get_default_device(),
        any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in module.modules()),
    )


def to_tensors(value: object, wanted: Wanted) -> object:
    """Return `value` with its numeric lists and arrays as tensors; the rest as it is."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Mapping):
        return {key: to_tensors(part, wanted) for key, part in value.items()}
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(to_tensors(part, wanted) for part in value)
    if isinstance(value, list | np.ndarray | np.number | float | int):
        return _tensor_of_list(value, wanted)
    return value


def _tensor_of_list(value: object, wanted: Wanted) -> object:
    if isinstance(value, list) and any(isinstance(part, Tensor) for part in value):
        return [to_tensors(part, wanted) for part in value]
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        return value
    if array.dtype.kind not in "fiubc":
        return value
    if array.dtype.kind == "c":
        return torch.tensor(array, device=wanted.device)
    exact = wanted.keeps_integers and array.dtype.kind in "iub"
    dtype = torch.int64 if exact else wanted.dtype
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    # A copy: a tensor over an array that was handed out read-only could write to it.
    return torch.tensor(array, dtype=dtype, device=wanted.device)


def kind_of(value: object) -> Kind:
    """Say which kind of value the first data found in `value` is; tensors where none is."""
    if type(value) is Tensor or isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, np.ndarray | np.generic):
        return "array"
    if isinstance(value, Mapping):
        kinds = {kind_of(part) for part in value.values()}
        return next((kind for kind in KINDS if kind in kinds), "tensor")
    if isinstance(value, list):
        first = value[0] if value else 0.0
        return "list" if isinstance(first, int | float | complex) else kind_of(first)
    return kind_of(value[0]) if isinstance(value, tuple) and value else "tensor"


def mirrored(value: object, kind: Kind) -> object:
    """Return a module's output as tensors, arrays or lists, inside any containers."""
    if isinstance(value, Tensor):
        if kind == "tensor":
            return value
        plain = value.detach().cpu()
        if kind == "list":
            return plain.tolist()
        return plain.float().numpy() if plain.dtype == torch.bfloat16 else plain.numpy()
    if isinstance(value, np.ndarray):
        if kind == "list":
            return value.tolist()
        return torch.tensor(value) if kind == "tensor" else value
    if isinstance(value, dict):
        return {key: mirrored(part, kind) for key, part in value.items()}
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(mirrored(part, kind) for part in value)
    if isinstance(value, list) and kind != "list":
        if any(isinstance(part, Tensor | np.ndarray | dict | tuple) for part in value):
            return [mirrored(part, kind) for part in value]
        return _numeric(value, kind)
    return value


def _numeric(value: list[object], kind: Kind) -> object:
    try:
        array = np.asarray(value)
    except ValueError:
        return value
    if array.dtype.kind not in "fiubc":
        return value
    if kind == "array":
        return array.astype(np.float32) if array.dtype == np.float64 else array
    return torch.tensor(value)


def detached(value: object) -> object:
    """Return `value` with every tensor in it cut from the autograd graph."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: detached(part) for key, part in value.items()}
    if isinstance(value, list):
        return [detached(part) for part in value] if _holds_tensors(value) else value
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(detached(part) for part in value)
    return value


def wants_gradient(value: object) -> bool:
    """Whether any tensor in `value` asks for a gradient."""
    if type(value) is Tensor or isinstance(value, Tensor):
        return value.requires_grad
    if isinstance(value, Mapping):
        return any(wants_gradient(part) for part in value.values())
    if isinstance(value, tuple) or (isinstance(value, list) and _holds_tensors(value)):
        return any(wants_gradient(part) for part in value)
    return False


def _holds_tensors(value: list[object]) -> bool:
    return bool(value) and not isinstance(value[0], int | float | str)

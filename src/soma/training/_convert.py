"""Values into tensors and back, at the border of a module.

A module takes tensors. Numeric lists and arrays become tensors of the module's own dtype
and device; tensors are the user's and are left alone. In inference a module's output goes
back to the kind of value that the graph was given; frames count as arrays. `mapped` finds
values inside containers.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from operator import is_, setitem
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from soma.training._shape import as_int64, numbers_of, readable

Kind = Literal["tensor", "array", "list"]
KINDS: tuple[Kind, ...] = ("tensor", "array", "list")

_ATOMS = (int, float, complex, str, bytes, np.generic, type(None))
_COMMON_ATOMS = frozenset({bool, int, float, str, type(None)})
_DEEPEST = 100  # containers in containers; below, values stay as they are
_NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)


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
    return mapped(value, partial(_as_tensor, wanted=wanted), numbers=True)


def _as_tensor(value: object, wanted: Wanted) -> object:
    is_data = isinstance(value, list | np.ndarray | np.generic | float | int)
    array = numbers_of(value) if is_data else None
    if array is None:
        return value
    exact = wanted.keeps_integers and array.dtype.kind in "iub"
    dtype = None if exact or array.dtype.kind == "c" else wanted.dtype
    array = as_int64(array) if exact else readable(array)
    # A copy: a tensor over an array that was handed out read-only could write to it.
    return torch.tensor(array, dtype=dtype, device=wanted.device)


def kind_of(value: object) -> Kind:
    """Say which kind of data is in `value`, tensors before arrays before lists."""
    if isinstance(value, Tensor):
        return "tensor"
    while type(value) is list and value and type(value[0]) is list and value[0] is not value:
        value = value[0]  # the rows of a list are alike
    kinds = set(map(_kind_of_one, walk(value)))
    return next((kind for kind in KINDS if kind in kinds), "tensor")


def _kind_of_one(value: object) -> Kind | None:
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, np.ndarray | np.generic):
        return "array"
    if isinstance(value, list) and (not value or isinstance(value[0], int | float | complex)):
        return "list"
    # Frames and sparse matrices answer as scikit-learn does.
    return "array" if hasattr(value, "to_numpy") or hasattr(value, "toarray") else None


def mirrored(value: object, kind: Kind) -> object:
    """Return a module's output as tensors, arrays or lists, inside any containers."""
    if kind == "tensor" and isinstance(value, Tensor):
        return value
    return mapped(value, partial(_mirrored_one, kind=kind))


def _mirrored_one(value: object, kind: Kind) -> object:
    if isinstance(value, Tensor):
        return value if kind == "tensor" or not _is_plain(value) else _outside_torch(value, kind)
    if isinstance(value, np.ndarray):
        if kind == "tensor" and value.dtype.kind in "fiubc":
            return torch.tensor(readable(value))
        return value.tolist() if kind == "list" else value
    if isinstance(value, list) and kind != "list":
        arrays = any(isinstance(part, np.ndarray) for part in value)
        array = None if arrays else numbers_of(value)
        if array is None:
            return value
        # Python's floats have no precision of their own, so they take torch's.
        single = {"float64": np.float32, "complex128": np.complex64}
        array = array.astype(single.get(array.dtype.name, array.dtype), copy=False)
        return array if kind == "array" else torch.tensor(array)
    return value


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has a counterpart outside torch; sparse and quantised ones have not."""
    return tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_meta)


def _outside_torch(tensor: Tensor, kind: Kind) -> object:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg()
    if kind == "list":
        return plain.tolist()
    if plain.is_floating_point() and plain.dtype not in _NUMPY_FLOATS:
        plain = plain.float()  # bfloat16 and the 8-bit floats
    return (plain.to(torch.complex64) if plain.dtype == torch.complex32 else plain).numpy()


def detached(value: object) -> object:
    """Return `value` with every tensor in it cut from the autograd graph."""
    if type(value) is Tensor:
        return value.detach() if value.requires_grad else value
    return mapped(value, _detached_one)


def _detached_one(value: object) -> object:
    return value.detach() if isinstance(value, Tensor) and value.requires_grad else value


def wants_gradient(value: object) -> bool:
    """Whether any tensor in `value` asks for a gradient."""
    if type(value) is Tensor:
        return value.requires_grad
    return any(isinstance(part, Tensor) and part.requires_grad for part in walk(value))


def mapped(value: object, function: Callable[[object], object], *, numbers: bool = False) -> object:
    """Return `value` with what `function` makes of it, or else of its parts.

    What has no part that changes comes back itself; anything else is a copy of the same type.
    With `numbers`, `function` is asked about bare numbers in mappings and tuples too.
    """
    seen: dict[int, tuple[object, object]] = {}  # keeps what two places share shared

    def answer(one: object, depth: int) -> object:
        if id(one) in seen:
            return seen[id(one)][1]
        seen[id(one)] = one, one  # where a container holds itself
        new = function(one)
        seen[id(one)] = one, opened(one, depth) if new is one and depth else new
        return seen[id(one)][1]

    def opened(one: object, depth: int) -> object:
        parts = parts_of(one)
        # The numbers in a record are settings rather than data.
        asked = numbers and (
            type(one) is tuple or (isinstance(one, Mapping) and not _attributes(one))
        )
        if not asked and (_only_atoms(parts) or _is_uneven(one)):
            return one
        new = [
            answer(part, depth - 1) if asked or not isinstance(part, _ATOMS) else part
            for part in parts
        ]
        return one if all(map(is_, new, parts)) else with_parts(one, new)

    return answer(value, _DEEPEST)


def walk(value: object) -> Iterator[object]:
    """Give what lies in containers, depth first; a container of atoms, as a numeric list, whole."""
    waiting, seen = [value], {}
    while waiting:
        part = waiting.pop()
        parts = parts_of(part)
        if _only_atoms(parts):
            yield part
        elif id(part) not in seen:
            seen[id(part)] = part
            waiting.extend(reversed(parts))


def parts_of(value: object) -> Sequence[object]:
    """Return what lies in a mapping, list, tuple or dataclass; nothing for other values."""
    if isinstance(value, list | tuple):
        return value
    if type(value) is dict:
        return list(value.values())
    if isinstance(value, (*_ATOMS, Tensor, np.ndarray, type)):
        return ()
    if isinstance(value, Mapping):
        return [*value.values(), *_attributes(value).values()]
    return list(_attributes(value).values()) if is_dataclass(value) else ()


def with_parts(value: Any, parts: Sequence[object]) -> object:
    """Return a copy of a container with other parts, in the order of `parts_of`."""
    twin: Any
    kind: Any = type(value)
    if isinstance(value, tuple):
        # The tuples of several results that torch gives are made by their own type alone.
        special = hasattr(kind, "n_sequence_fields")
        return kind(parts) if special else tuple.__new__(kind, parts)
    if isinstance(value, list):
        twin = copy(value)
        twin[:] = parts
        return twin
    if kind is dict or not (isinstance(value, MutableMapping) or is_dataclass(value)):
        return dict(zip(value, parts, strict=False))
    ordered = isinstance(value, OrderedDict)
    # `copy` would call the type without arguments, and an output class may need some.
    twin = kind.__new__(kind) if ordered else copy(value)
    put = OrderedDict.__setitem__ if ordered else setitem
    keys = list(value) if isinstance(value, Mapping) else []
    for key, part in zip(keys if isinstance(value, MutableMapping) else (), parts, strict=False):
        put(twin, key, part)
    for name, part in zip(_attributes(value), parts[len(keys) :], strict=True):
        object.__setattr__(twin, name, part)
    return twin


def _attributes(value: Any) -> dict[str, object]:
    names = [one.name for one in fields(value)] if is_dataclass(value) else []
    slots = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return {**slots, **getattr(value, "__dict__", {})}


def _is_uneven(value: object) -> bool:
    # Rows of several lengths are the filter's to pad: they stay as they came.
    return isinstance(value, list) and all(
        isinstance(part, (*_ATOMS, list, tuple)) for part in walk(value)
    )


def _only_atoms(parts: Sequence[object]) -> bool:
    kinds = set(map(type, parts))
    return kinds <= _COMMON_ATOMS or all(issubclass(kind, _ATOMS) for kind in kinds)

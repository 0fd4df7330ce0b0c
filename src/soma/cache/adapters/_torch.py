"""Torch tensors and parameters: type, shape and logical values.

The device and `requires_grad` are no part of the value, and come back with it. What hangs
on an autograd graph has a digest and is not stored: the graph would be lost.
"""

from functools import lru_cache
from math import prod
from typing import Any

from soma._extras import loaded, require
from soma.cache._parts import Block, Parts, PutTogether, Refused, Stored, TakeApart


def find(cls: type) -> TakeApart | None:
    """Return how a tensor, a parameter, a size, a type or a device is taken apart."""
    torch = loaded("torch")
    if torch is None:
        return None
    takers: dict[type, TakeApart] = {
        torch.Tensor: _tensor,
        torch.nn.Parameter: _parameter,
        torch.Size: _size,
        torch.dtype: _dtype,
        torch.device: _device,
    }
    return takers.get(cls)


def _tensor(value: Any) -> Parts:
    return _parts("torch.tensor", value)


def _parameter(value: Any) -> Parts:
    return _parts("torch.parameter", value)


def _parts(kind: str, value: Any) -> Parts:
    torch: Any = loaded("torch")
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        raise Refused("a sparse, quantised or nested tensor has no codec")
    if value.is_meta:
        raise Refused("a tensor on the meta device has no values")
    name, plain = _named(value.dtype)
    shape = tuple(value.shape)
    device = "" if value.is_cpu else str(value.device)
    seen = (*shape, 2) if name.startswith("complex") else shape
    return Parts(
        kind,
        facts=(name, *shape),
        block=Block(_bytes(torch, value, plain), SEEN[name], seen),
        aside=(value.requires_grad, device) if value.requires_grad or device else (),
        unstorable=ATTACHED if value.grad_fn is not None else "",
    )


@lru_cache(maxsize=64)
def _named(dtype: Any) -> tuple[str, bool]:
    """Return what a type is called, and whether Python reads its memory as it is."""
    name = str(dtype).removeprefix("torch.")
    if name not in SEEN:
        raise Refused(f"the torch type {name} has no codec")
    return name, name in _READABLE


def _bytes(torch: Any, value: Any, plain: bool) -> Any:
    """Return the logical values as they lie in memory, copied only if they lie apart."""
    if value.numel() == 0:
        return b""
    if plain and value.is_cpu and value.is_contiguous() and not value.is_neg():
        return (value.detach() if value.requires_grad else value).numpy().data.cast("B")
    whole = value.detach().cpu().resolve_conj().resolve_neg().contiguous().view(-1)
    if whole.is_complex():
        whole = torch.view_as_real(whole).view(-1)
    return whole.view(torch.uint8).numpy().data


def _build_tensor(stored: Stored) -> Any:
    torch = require("torch", extra="torch")
    name, *shape = stored.facts
    if name not in SEEN or min(shape, default=0) < 0:
        raise ValueError("no tensor has this type and shape")
    dtype = getattr(torch, name)
    size = prod(shape)
    if len(stored.bytes()) != size * dtype.itemsize:
        raise ValueError("a tensor of another size than its bytes")
    if size == 0:
        tensor = torch.empty(shape, dtype=dtype)
    else:
        tensor = torch.frombuffer(stored.memory(), dtype=dtype).view(shape)
    if not stored.aside:
        return tensor
    requires_grad, device = stored.aside
    if device:
        if device == "meta":
            raise ValueError("a tensor without values")
        tensor = tensor.to(torch.device(device))
    return tensor.requires_grad_(bool(requires_grad))


def _build_parameter(stored: Stored) -> object:
    torch = require("torch", extra="torch")
    tensor = _build_tensor(stored)
    return torch.nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)


def _size(value: Any) -> Parts:
    return Parts("torch.size", tuple(value))


def _build_size(stored: Stored) -> object:
    return require("torch", extra="torch").Size(stored.items)


def _dtype(value: Any) -> Parts:
    return Parts("torch.dtype", (str(value).removeprefix("torch."),))


def _build_dtype(stored: Stored) -> object:
    torch = require("torch", extra="torch")
    (name,) = stored.items
    if not isinstance(found := vars(torch).get(name), torch.dtype):
        raise ValueError(f"torch has no type {name!r}")
    return found


def _device(value: Any) -> Parts:
    return Parts("torch.device", (str(value),))


def _build_device(stored: Stored) -> object:
    (name,) = stored.items
    return require("torch", extra="torch").device(name)


ATTACHED = (
    "it hangs on an autograd graph, which is not stored; detach it or compute it under no_grad"
)

SEEN = {
    "bool": "BOOL",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "complex32": "F16",
    "complex64": "F32",
    "complex128": "F64",
}

_READABLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "float32", "float64"})

BUILDERS: dict[str, PutTogether] = {
    "torch.tensor": _build_tensor,
    "torch.parameter": _build_parameter,
    "torch.size": _build_size,
    "torch.dtype": _build_dtype,
    "torch.device": _build_device,
}

"""Tensors as the bytes of one safetensors file, under their own names, and back bit for bit."""

from collections.abc import Mapping

import torch
from safetensors.torch import load, save
from torch import Tensor

# What every reader of safetensors knows; others are stored as bytes, with their type beside them.
_USUAL = frozenset(
    {
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64,
    }
)  # fmt: skip

Odd = dict[str, tuple[str, list[int]]]  # type and shape of the tensors stored as bytes
Viewed = dict[str, Odd]  # by member


def written(tensors: Mapping[str, Tensor]) -> tuple[bytes, Odd]:
    """Return the bytes of a file, and what it does not tell by itself."""
    odd: Odd = {}
    plain = {}
    for name, tensor in tensors.items():
        # Cloned: a part of a larger tensor, or one seen twice, is no file of its own.
        whole = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().clone()
        if whole.dtype not in _USUAL:
            odd[name] = (str(whole.dtype).removeprefix("torch."), list(whole.shape))
            whole = whole.reshape(-1).view(torch.uint8)
        plain[name] = whole
    return save(plain), odd


def read(data: bytes | bytearray, odd: Odd) -> dict[str, Tensor]:
    """Return the tensors of a file.

    Raises:
        Exception: the bytes are no such file.
    """
    tensors = load(bytes(data))
    for name, (kind, shape) in odd.items():
        dtype = getattr(torch, kind, None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"torch has no type {kind!r}")
        tensors[name] = tensors[name].view(dtype).reshape(shape)
    return tensors

"""Finds the tensors in what a module returns, and makes plain numbers of special ones.

A tensor has a suffix that continues the id of its unit: `[0]`, `.key`, or nothing where it is
the whole output.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from soma._extras import loaded

_DEEPEST = 8


def numeric_tensors(
    value: object, suffix: str = "", depth: int = 0
) -> Iterator[tuple[str, Tensor]]:
    """Give every float or complex tensor in a value with its suffix."""
    if isinstance(value, Tensor):
        if value.is_floating_point() or value.is_complex() or value.is_quantized:
            yield suffix, value
    elif isinstance(value, PackedSequence):
        yield from numeric_tensors(value.data, suffix, depth)
    elif depth < _DEEPEST:
        for step, part in _parts(value):
            yield from numeric_tensors(part, suffix + step, depth + 1)


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key in list(value):
            yield f".{key}", value[key]
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield f"[{index}]", part
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield f".{one.name}", getattr(value, one.name, None)


def plain(tensor: Tensor) -> Tensor | None:
    """Return real, dense numbers that say the same as a tensor; None: it holds none.

    Sparse tensors give the values that are there, complex ones their moduli, quantised ones
    what they stand for, tensors spread over machines the part that lies here.
    """
    if tensor.is_meta or is_fake(tensor):
        return None
    tensor = tensor.detach()
    if is_spread(tensor):
        tensor = tensor.to_local()  # type: ignore[attr-defined]
    if tensor.layout is not torch.strided:
        tensor = _dense(tensor)
    elif tensor.is_nested:
        tensor = tensor.values()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.is_complex():
        tensor = tensor.abs()
    # Sums of squares of 16-bit numbers overflow at once.
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def is_spread(tensor: Tensor) -> bool:
    """Whether parts of a tensor lie on several machines."""
    return _is_a(tensor, "torch.distributed.tensor", "DTensor")


def is_fake(tensor: Tensor) -> bool:
    """Whether a tensor stands for another one and holds no numbers."""
    return _is_a(tensor, "torch._subclasses.fake_tensor", "FakeTensor")


def _is_a(tensor: Tensor, library: str, name: str) -> bool:
    # What is not loaded has no instances; loading it takes seconds.
    if type(tensor) in (Tensor, torch.nn.Parameter) or (found := loaded(library)) is None:
        return False
    return isinstance(tensor, getattr(found, name))


def is_usual(tensor: Tensor) -> bool:
    """Whether a tensor is what `plain` would return as it is."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.dtype in (torch.float32, torch.float64)
        and not tensor.is_meta
        and not tensor.is_nested
    )


def _dense(tensor: Tensor) -> Tensor:
    if tensor.layout is torch.sparse_coo:
        return tensor.coalesce().values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return tensor.values()
    if tensor.is_nested:
        return tensor.values()
    return tensor.to_dense()


def flat(tensor: Tensor) -> Tensor:
    """Return all elements in one row, in memory order where that spares a copy."""
    if not tensor.is_contiguous():
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)
    return tensor.reshape(-1)

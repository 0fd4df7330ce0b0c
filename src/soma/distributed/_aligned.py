"""Tensors that cross between processes, put where this process would have put them.

What a message brings lies at any address, and matrix products take another path, with other
last bits, where an operand is not aligned. With the copies here training is bit-equal.
"""

import torch
from torch import Tensor

from soma.training import mapped

_ALIGNMENT = 64  # bytes, as torch's own memory has


def sent(value: object) -> object:
    """Return a value to send: the gradients that come back for it are aligned."""
    return mapped(value, _sent) if torch.is_grad_enabled() else value


def received(value: object) -> object:
    """Return a value that came, aligned."""
    return mapped(value, _received)


def _sent(one: object) -> object:
    if not isinstance(one, Tensor) or not one.requires_grad:
        return one
    view = one.view_as(one)  # of this message alone, so that the hook ends with it
    view.register_hook(_aligned)  # type: ignore[no-untyped-call]
    return view


def _received(one: object) -> object:
    return _aligned(one) if isinstance(one, Tensor) else one


def _aligned(tensor: Tensor) -> Tensor:
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return tensor
    if tensor.data_ptr() % _ALIGNMENT == 0 and tensor.is_contiguous():
        return tensor
    return tensor.clone()

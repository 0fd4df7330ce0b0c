"""Tensors that cross between processes, put where this process would have put them.

What a message brings lies at any address, and matrix products take another path, with other
last bits, where an operand is not aligned. With the copies here training is bit-equal.
"""

import torch
from torch import Tensor

from soma.training import mapped

_ALIGNMENT = 64  # bytes, as torch's own memory has


def sent(value: object) -> object:
    """Return a value to send, in main memory: the gradients that come back for it are aligned."""
    return mapped(value, _sent)


def received(value: object, device: torch.device | None = None) -> object:
    """Return a value that came, aligned, and on a device if one is given."""
    if device is None or device.type == "cpu":
        return mapped(value, _received)
    return mapped(value, lambda one: one.to(device) if isinstance(one, Tensor) else one)


def _sent(one: object) -> object:
    if not isinstance(one, Tensor):
        return one
    if not one.requires_grad or not torch.is_grad_enabled():
        return one.cpu()
    view = one.cpu().view_as(one)  # of this message alone, so that the hook ends with it
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

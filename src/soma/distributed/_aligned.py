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
    return _sent(value) if type(value) is Tensor else mapped(value, _sent)


def received(value: object, device: torch.device | None = None) -> object:
    """Return a value that came, aligned, and on a device if one is given."""
    if device is not None and device.type != "cpu":
        return mapped(value, lambda one: one.to(device) if isinstance(one, Tensor) else one)
    return _received(value) if type(value) is Tensor else mapped(value, _received)


def _sent(one: object) -> object:
    if not isinstance(one, Tensor):
        return one
    if not one.requires_grad or not torch.is_grad_enabled():
        return one.cpu()
    # The gradient of a product is a new tensor, which torch aligns. A hook would do that where it
    # is needed alone, but each backward would wait for Python's lock on both sides.
    return one.cpu() * 1


def _received(one: object) -> object:
    if not isinstance(one, Tensor) or one.layout is not torch.strided or one.device.type != "cpu":
        return one
    if one.data_ptr() % _ALIGNMENT == 0 and one.is_contiguous():
        return one
    return one.clone()

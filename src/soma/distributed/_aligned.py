"""Tensors that cross between processes, put where this process would have put them.

What a message brings lies at any address, and matrix products take another path, with other
last bits, where an operand is not aligned. With the copies here training is bit-equal.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from soma.training import mapped

_ALIGNMENT = 64  # bytes, as torch's own memory has


class _Crossing(torch.autograd.Function):
    """The identity; input and gradient are aligned."""

    @staticmethod
    def forward(context: FunctionCtx, x: Tensor) -> Tensor:
        return x.view_as(x) if _is_aligned(x) else x.clone()

    @staticmethod
    def backward(context: FunctionCtx, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return gradient if _is_aligned(gradient) else gradient.clone()


def crossing(value: object) -> object:
    """Return a value that goes to another process or came from one."""
    return mapped(value, _crossed)


def _crossed(one: object) -> object:
    if not isinstance(one, Tensor) or one.layout is not torch.strided:
        return one
    if one.requires_grad and torch.is_grad_enabled():
        return _Crossing.apply(one)  # type: ignore[no-untyped-call]
    return one if _is_aligned(one) else one.clone()


def _is_aligned(tensor: Tensor) -> bool:
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        return True
    return tensor.data_ptr() % _ALIGNMENT == 0 and tensor.is_contiguous()

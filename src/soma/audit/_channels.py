"""Numbers of each channel of an output and of its gradient, over the samples of one call.

They stay tensors on their device until the step ends: a row for each kind of number.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from soma.audit._measures import PIECE

Scratch = Callable[[Tensor], Tensor]  # memory for as many elements


@dataclass(slots=True)
class ChannelOutput:
    """Of each channel: the largest absolute output, its mean and its squares about the mean."""

    samples: int
    largest: Tensor
    mean: Tensor
    spread: Tensor


def channel_output(x: Tensor, axis: int, scratch: Scratch) -> ChannelOutput:
    """Look at an output, channel by channel."""
    x_BCP = _by_channel(x, axis)
    samples, pieces = x_BCP.shape[0] * x_BCP.shape[2], _pieces(x_BCP)
    low = torch.stack([one.amin((0, 2)) for one in pieces]).amin(0)
    high = torch.stack([one.amax((0, 2)) for one in pieces]).amax(0)
    mean = torch.stack([_summed(one) for one in pieces]).sum(0) / samples
    spread = torch.stack([_squares(one, mean, high - low, scratch) for one in pieces]).sum(0)
    return ChannelOutput(
        samples=samples, largest=torch.maximum(low.abs(), high.abs()), mean=mean, spread=spread
    )


def channel_gradient(gradient: Tensor, axis: int, scratch: Scratch) -> Tensor:
    """Return the sum of absolute gradients of each channel."""
    pieces = _pieces(_by_channel(gradient, axis))
    sums = [_summed(torch.abs(one, out=_room(one, scratch))) for one in pieces]
    return torch.stack(sums).sum(0)


def pooled(outputs: list[ChannelOutput]) -> ChannelOutput:
    """Return the numbers of several calls as of one."""
    first, *others = outputs
    for one in others:
        samples = first.samples + one.samples
        gap = one.mean - first.mean
        first = ChannelOutput(
            samples=samples,
            largest=torch.maximum(first.largest, one.largest),
            mean=first.mean + gap * (one.samples / samples),
            spread=first.spread
            + one.spread
            + gap.square() * (first.samples * one.samples / samples),
        )
    return first


def _by_channel(x: Tensor, axis: int) -> Tensor:
    """Return a view, or a copy, of shape (before, channels, after)."""
    before = 1
    for size in x.shape[:axis]:
        before *= size
    return x.reshape(before, x.shape[axis], -1)


def _pieces(x_BCP: Tensor) -> tuple[Tensor, ...]:
    """Cut on a CPU what would not stay in its cache."""
    if x_BCP.device.type != "cpu" or x_BCP.numel() <= PIECE:
        return (x_BCP,)
    return torch.split(x_BCP, max(1, PIECE // (x_BCP.shape[1] * x_BCP.shape[2])))


def _room(like: Tensor, scratch: Scratch) -> Tensor | None:
    """Return memory for a piece, or None where torch had better find some itself."""
    if like.device.type != "cpu" or like.numel() > PIECE:
        return None
    return scratch(like).view(like.shape)


def _summed(x_BCP: Tensor) -> Tensor:
    # Two plain sums are faster than one over two axes.
    return x_BCP.sum(0).sum(1) if x_BCP.shape[2] == 1 else x_BCP.sum(2).sum(0)


def _squares(x_BCP: Tensor, mean: Tensor, width: Tensor, scratch: Scratch) -> Tensor:
    """Return sums of squares about the mean that neither overflow nor vanish."""
    room = _room(x_BCP, scratch)
    about = torch.sub(x_BCP, mean[:, None], out=room)
    scale = torch.where((width > 0) & width.isfinite(), width, 1)
    about.div_(scale[:, None])
    return _summed(about.mul_(about)) * scale.square()

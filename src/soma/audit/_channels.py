"""Numbers of each channel of an output and of its gradient, over the samples of one call.

They stay tensors on their device until the step ends: a row for each kind of number.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from soma.audit._measures import LARGE, PIECE, SMALL, Sums

Scratch = Callable[[Tensor], Tensor]  # memory for as many elements


@dataclass(slots=True)
class ChannelOutput:
    """Of each channel: the largest absolute output, its mean and its squares about the mean."""

    samples: int
    largest: Tensor
    mean: Tensor
    spread: Tensor
    sums: Sums | None = None  # over all channels, where they come for nothing


def channel_output(x: Tensor, axis: int, scratch: Scratch) -> ChannelOutput:
    """Look at an output, channel by channel."""
    x_BCP = _by_channel(x, axis)
    samples, pieces = x_BCP.shape[0] * x_BCP.shape[2], _pieces(x_BCP)
    low = _over([_lowest(one) for one in pieces], torch.amin)
    high = _over([_highest(one) for one in pieces], torch.amax)
    mean = _over([_summed(one) for one in pieces], torch.sum) / samples
    largest, sums, spread = torch.maximum(high, -low), None, None
    if x.device.type == "cpu":
        bottom, top = low.amin().item(), high.amax().item()
        if bottom > -LARGE and top < LARGE and max(-bottom, top) > SMALL:
            squares = _over([_plain_squares(one, scratch) for one in pieces], torch.sum)
            spread = torch.addcmul(squares, mean, mean, value=-samples)
            # A mean far from zero has cancelled the digits, or a channel is too small for squares.
            if torch.sub(squares, spread, alpha=1e3).amax().item() > 0 or (
                squares.amin().item() < SMALL**2 and bool(largest[squares < SMALL**2].any())
            ):
                spread = None
            else:
                sums = Sums(bottom, top, squares.sum().item(), _about(mean, samples, spread))
    if spread is None:
        width = high - low
        spread = _over([_squares(one, mean, width, scratch) for one in pieces], torch.sum)
    return ChannelOutput(samples=samples, largest=largest, mean=mean, spread=spread, sums=sums)


def _about(mean: Tensor, samples: int, spread: Tensor) -> float:
    """Return the sum of squares about the common mean, from those about each channel's own."""
    between = mean - mean.mean()
    return spread.sum().item() + samples * between.dot(between).item()


def channel_gradient(gradient: Tensor, axis: int, scratch: Scratch) -> Tensor:
    """Return the sum of absolute gradients of each channel."""
    pieces = _pieces(_by_channel(gradient, axis))
    sums = [_summed(torch.abs(one, out=_room(one, scratch))) for one in pieces]
    return _over(sums, torch.sum)


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


def _over(parts: list[Tensor], how: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Put the numbers of several pieces together."""
    return parts[0] if len(parts) == 1 else how(torch.stack(parts), 0)


def _lowest(x_BCP: Tensor) -> Tensor:
    return x_BCP[:, :, 0].amin(0) if x_BCP.shape[2] == 1 else x_BCP.amin(2).amin(0)


def _highest(x_BCP: Tensor) -> Tensor:
    return x_BCP[:, :, 0].amax(0) if x_BCP.shape[2] == 1 else x_BCP.amax(2).amax(0)


def _plain_squares(x_BCP: Tensor, scratch: Scratch) -> Tensor:
    """Return sums of squares of numbers that are neither very small nor very large."""
    if x_BCP.shape[2] == 1 or x_BCP.stride(2) != 1:
        return _summed(torch.mul(x_BCP, x_BCP, out=_room(x_BCP, scratch)))
    norms: Tensor = torch.linalg.vector_norm(x_BCP, dim=2)
    return norms.square_().sum(0)


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

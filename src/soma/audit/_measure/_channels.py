"""Numbers of each channel of an output and of its gradient, over the samples of one call.

They stay tensors on their device until the step ends: a row for each kind of number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from soma.audit._measure._layout import Sums
from soma.audit._measure._row_norms import LARGE, PIECE, SMALL

Scratch = Callable[[Tensor], Tensor]  # memory for as many elements


@dataclass(slots=True)
class ChannelOutput:
    """Of each channel: its extremes, its sum, and the sum of squares about its mean."""

    samples: int
    low: Tensor
    high: Tensor
    total: Tensor
    spread: Tensor
    sums: Sums | None = None  # over all channels, where they come for nothing

    @property
    def channels(self) -> int:
        """How many channels there are."""
        return self.low.numel()


def channel_output(x: Tensor, axis: int, scratch: Scratch) -> ChannelOutput:
    """Look at an output, channel by channel."""
    x_BCP = _by_channel(x, axis)
    samples, pieces = x_BCP.shape[0] * x_BCP.shape[2], _pieces(x_BCP)
    low = _over([_lowest(one) for one in pieces], torch.amin)
    high = _over([_highest(one) for one in pieces], torch.amax)
    found = ChannelOutput(
        samples, low, high, total=_over([_summed(one) for one in pieces], torch.sum), spread=low
    )
    if x.device.type != "cpu" or not _take_squares(found, pieces, scratch):
        mean, width = found.total / samples, high - low
        found.spread = _over([_squares(one, mean, width, scratch) for one in pieces], torch.sum)
    elif x.dim() == 2 and axis == 1 and found.sums is not None:
        found.sums = found.sums._replace(by_place=found.total)
    return found


def _take_squares(found: ChannelOutput, pieces: Sequence[Tensor], scratch: Scratch) -> bool:
    """Take the spread from plain sums of squares, which give `sums` too; False: too inexact.

    That is so where a mean far from zero cancels the digits, or a channel is too small for squares.
    """
    low, high = found.low.amin().item(), found.high.amax().item()
    if not (low > -LARGE and high < LARGE and max(-low, high) > SMALL):
        return False
    squares = _over([_plain_squares(one, scratch) for one in pieces], torch.sum)
    spread = torch.addcmul(squares, found.total, found.total, value=-1 / found.samples)
    if torch.sub(squares, spread, alpha=1e3).amax().item() > 0:
        return False
    small = SMALL**2
    if squares.amin().item() < small and bool(
        torch.maximum(found.high, -found.low)[squares < small].any()
    ):
        return False
    found.spread = spread
    total, everything = found.total.sum().item(), squares.sum().item()
    about = everything - total * total / (found.samples * found.channels)
    if about < 1e-3 * everything:
        between = found.total / found.samples
        between = between - between.mean()
        about = spread.sum().item() + found.samples * between.dot(between).item()
    found.sums = Sums(low, high, everything, about)
    return True


def channel_rows(outputs: Sequence[ChannelOutput]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the largest absolute output and the deviation of each channel, for each output."""
    lows = torch._foreach_neg([one.low for one in outputs])
    torch._foreach_maximum_(lows, [one.high for one in outputs])
    spreads = [one.spread for one in outputs]
    deviations = torch._foreach_div(spreads, [max(one.samples, 1) for one in outputs])
    torch._foreach_sqrt_(deviations)
    return list(lows), list(deviations)


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
        gap = one.total / one.samples - first.total / first.samples
        first = ChannelOutput(
            samples=samples,
            low=torch.minimum(first.low, one.low),
            high=torch.maximum(first.high, one.high),
            total=first.total + one.total,
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
    """Cut a tensor on a CPU into pieces that stay in its cache."""
    if x_BCP.device.type != "cpu" or x_BCP.numel() <= PIECE:
        return (x_BCP,)
    return torch.split(x_BCP, max(1, PIECE // (x_BCP.shape[1] * x_BCP.shape[2])))


def _room(like: Tensor, scratch: Scratch) -> Tensor | None:
    """Return scratch memory for a piece on a CPU; None: torch allocates it."""
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

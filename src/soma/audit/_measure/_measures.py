"""Numbers of one tensor: of an output, of a gradient, of a change.

On a CPU the passes over memory are the cost, so the fast reductions of torch do the work, in
pieces that stay in its cache, and the slow ones run only where the extremes ask for them. On
other devices everything stays there, as 0-d tensors.
"""

import math
from collections.abc import Iterable
from threading import local
from typing import NamedTuple

import torch
from torch import Tensor

from soma.audit._measure._boards import Boards, Row
from soma.audit._measure._sample import sampled
from soma.audit._measure._tensors import flat

PIECE = 1 << 18  # elements
# Squares of float32 numbers, and sums of them, are exact enough between these.
SMALL, LARGE = 1e-15, 1e15


class Activation(NamedTuple):
    """What is known of one output; sums are over its finite elements."""

    size: float
    bad: float  # not finite
    masked: float  # of them -inf
    zeros: float
    total: float
    absolute: float  # sum of absolute values
    norm: float
    spread: float  # sum of squares about the mean
    low: float
    high: float
    varies: float  # variance over the first axis over the mean square; NaN unknown
    flat: float  # share where its activation is flat; NaN unknown


class Gradient(NamedTuple):
    """What is known of one gradient."""

    size: float
    bad: float
    norm: float
    largest: float


class Sums(NamedTuple):
    """What a look at the channels of an output tells of all its elements, which are finite."""

    low: float
    high: float
    squares: float
    spread: float
    by_place: Tensor | None = None  # sums over the first axis


class Measures:
    """Takes numbers of plain tensors; one for each audit, for its scratch memory."""

    def __init__(self) -> None:
        self.boards = Boards()
        self._local = local()

    def activation(self, x: Tensor, flat_share: Tensor | None, sums: Sums | None = None) -> Row:
        """Return the numbers of an output as `Activation` orders them.

        Args:
            x: the output, as plain numbers.
            flat_share: the share of it where its activation is flat.
            sums: what is known of it already.
        """
        if x.numel() == 0:
            return Row(
                (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.nan, math.nan) + (math.nan,) * 2
            )
        if x.device.type == "cpu":
            share = math.nan if flat_share is None else flat_share.item()
            return Row((*(self._usual(x, sums) or self._activation(x)), share))
        return self.boards.put_all(_activation_on_device(x, flat_share))

    def size(self, x: Tensor) -> Row:
        """Return the numbers of an output of which no more than its norm is asked.

        Of a large one a sample tells it.
        """
        if x.device.type == "cpu" and x.numel():
            some = sampled(x)
            row = flat(x) if some is None else some.reshape(-1)
            squares = sum(one.dot(one).item() for one in torch.split(row, PIECE))
            if SMALL**2 < squares < LARGE**2:
                norm, unknown = math.sqrt(squares * x.numel() / row.numel()), (math.nan,)
                return Row((float(x.numel()), 0.0, 0.0, *unknown * 3, norm, *unknown * 5))
        return self.activation(x, None)

    def gradient(self, x: Tensor) -> Row:
        """Return the numbers of a gradient as `Gradient` orders them."""
        if x.numel() == 0:
            return Row((0.0, 0.0, 0.0, 0.0))
        if x.device.type == "cpu":
            norm, largest = self.norm(flat(x))
            bad = 0.0 if math.isfinite(largest) else float((~x.isfinite()).sum())
            return Row((float(x.numel()), bad, norm, largest))
        return self.boards.put_all(_gradient_on_device(x))

    def norm(self, row: Tensor) -> tuple[float, float]:
        """Return norm and largest absolute value of a row of numbers on a CPU."""
        squares, largest = 0.0, 0.0
        for piece in torch.split(row, PIECE) if row.numel() > PIECE else (row,):
            low, high = _ends(piece)
            top = max(-low, high)
            if not math.isfinite(top):
                top = math.nan if piece.isnan().any() else math.inf
                return top, top
            largest = max(largest, top)
            squares += self._squares(piece, top)
        return math.sqrt(squares), largest

    def change(self, before: Tensor, after: Tensor) -> tuple[float, float]:
        """Return norm and largest absolute value of a difference of rows on a CPU."""
        squares, largest = 0.0, 0.0
        for old, new in _pieces(before, after):
            scratch = self.scratch(new)
            torch.sub(new, old, out=scratch)
            found = scratch.dot(scratch).item()
            if not SMALL**2 < found < LARGE**2:
                norm, top = self.norm(scratch)
                if not math.isfinite(norm):
                    return norm, top
                found, largest = norm**2, max(largest, top)
            squares += found
        norm = math.sqrt(squares)
        return norm, largest or norm

    def copy(self, source: Tensor, target: Tensor) -> float:
        """Copy a row of numbers on a CPU; return its norm, taken while it is in the cache."""
        squares = 0.0
        for old, new in _pieces(source, target):
            new.copy_(old)
            squares += new.dot(new).item()
        if not SMALL**2 < squares < LARGE**2:
            return self.norm(source)[0]
        return math.sqrt(squares)

    def scratch(self, like: Tensor, count: int | None = None) -> Tensor:
        """Return memory for as many elements, or for so many; what it held before is lost."""
        kept: dict[torch.dtype, Tensor] = self._local.__dict__.setdefault("kept", {})
        found = kept.get(like.dtype)
        if found is None:
            found = kept[like.dtype] = torch.empty(PIECE, dtype=like.dtype)
        return found[: like.numel() if count is None else count]

    def _squares(self, piece: Tensor, top: float) -> float:
        if SMALL < top < LARGE or top == 0.0:
            return piece.dot(piece).item()
        scaled = torch.div(piece, top, out=self.scratch(piece))
        return scaled.dot(scaled).item() * top * top

    def _usual(self, x: Tensor, sums: Sums | None) -> tuple[float, ...] | None:
        """Return the numbers of an output with the fewest passes; None: it wants more care."""
        if (some := sampled(x)) is not None:
            return self._by_sample(x, some, sums)
        row, samples = flat(x), x.shape[0] if x.dim() > 1 else 1
        low, high, squares = (math.inf, -math.inf, 0.0) if sums is None else sums[:3]
        zeros, absolute, one_sided = 0.0, 0.0, []
        for piece in torch.split(row, PIECE) if row.numel() > PIECE else (row,):
            bottom, top = low, high
            if sums is None:
                bottom, top = _ends(piece)
                if not (bottom > -LARGE and top < LARGE and max(-bottom, top) > SMALL):
                    return None
                low, high = min(low, bottom), max(high, top)
                squares += piece.dot(piece).item()
            if bottom < 0 < top:
                sizes = torch.abs(piece, out=self.scratch(piece))
                absolute += sizes.sum().item()
                if sizes.amin().item() > 0.0:
                    continue
            else:
                one_sided.append(piece)
            if bottom <= 0 <= top:
                zeros += piece.numel() - torch.ne(piece, 0, out=self.scratch(piece)).sum().item()
        by_place = None if sums is None else sums.by_place
        if by_place is None:
            by_place = x.sum(0).reshape(-1) if samples > 1 else row
        total = by_place.sum().item()
        if low >= 0 or high <= 0:
            absolute = abs(total)
        else:
            absolute += sum(abs(one.sum().item()) for one in one_sided)
        spread = squares - total * total / row.numel() if sums is None else sums.spread
        if sums is None and spread < 1e-3 * squares:
            return None  # a mean far from zero has cancelled the digits
        varies = math.nan
        if samples > 1:
            varies = 1.0 - by_place.dot(by_place).item() / samples / squares
            if not 1e-2 <= varies <= 1.0:
                varies = self._varies(x, squares, max(-low, high))
        return (
            float(row.numel()), 0.0, 0.0, zeros, total, absolute,
            math.sqrt(squares), spread, low, high, varies,
        )  # fmt: skip

    def _by_sample(self, x: Tensor, some: Tensor, sums: Sums | None) -> tuple[float, ...] | None:
        """As `_usual`, with all but the extremes told by a sample of the output."""
        low, high = sums[:2] if sums is not None else _ends(flat(x))
        top = max(-low, high)
        if not (low > -LARGE and high < LARGE and top > SMALL):
            return None
        count, samples = some.numel(), some.shape[0]
        room = self.scratch(x, 2 * count)
        row = room[:count].view(some.shape).copy_(some).view(-1)
        seen, times = row.dot(row).item(), x.numel() / count
        squares = seen * times if sums is None else sums.squares
        if sums is None and top * top > 0.01 * seen:
            squares = sum(one.dot(one).item() for one in torch.split(flat(x), PIECE))
        if not 0.5 * squares < seen * times < 2.0 * squares:
            return None  # few numbers make up the norm
        by_place = row.view(samples, -1).sum(0)
        total = by_place.sum().item()
        spread = (seen - total * total / count) / seen
        varies = math.nan if samples == 1 else 1 - by_place.dot(by_place).item() / samples / seen
        if spread < 1e-3 or not (samples == 1 or 1e-2 <= varies <= 1.0):
            return None  # a mean far from zero has cancelled the digits
        zeros, absolute = 0.0, abs(total)
        if low <= 0 <= high:
            zeros = count - torch.ne(row, 0, out=room[count:]).sum().item()
        if low < 0 < high:
            absolute = torch.abs(row, out=room[count:]).sum().item()
        return (
            float(x.numel()), 0.0, 0.0, zeros * times, total * times, absolute * times,
            math.sqrt(squares), spread * squares, low, high, varies,
        )  # fmt: skip

    def _activation(self, x: Tensor) -> tuple[float, ...]:
        row = flat(x)
        found = [0.0] * 7  # bad, masked, zeros, total, absolute, squares, spread
        lows, highs, done = [], [], 0
        for piece in torch.split(row, PIECE) if row.numel() > PIECE else (row,):
            low, high = _ends(piece)
            lows.append(low)
            highs.append(high)
            if not math.isfinite(high - low) and not (math.isfinite(low) and math.isfinite(high)):
                kept = piece[piece.isfinite()]
                found[0] += piece.numel() - kept.numel()
                found[1] += (piece == -math.inf).sum().item()
                piece = kept
                if not piece.numel():
                    continue
                low, high = _ends(piece)
            count = piece.numel()
            zeros, total, absolute, squares, spread = self._piece(piece, low, high)
            if done:
                # Two spreads about two means make one about the common mean.
                gap = total / count - found[3] / done
                spread += gap * gap * done * count / (done + count)
            done += count
            for at, number in enumerate((zeros, total, absolute, squares, spread), 2):
                found[at] += number
        bad, masked, zeros, total, absolute, squares, spread = found
        low = math.nan if any(map(math.isnan, lows)) else min(lows)
        high = math.nan if any(map(math.isnan, highs)) else max(highs)
        varies = math.nan
        if not bad and squares > 0 and x.dim() > 1 and x.shape[0] > 1:
            varies = self._varies(x, squares, max(-low, high))
        return (
            float(row.numel()), bad, masked, zeros, total, absolute,
            math.sqrt(squares), spread, low, high, varies,
        )  # fmt: skip

    def _piece(self, piece: Tensor, low: float, high: float) -> tuple[float, ...]:
        count, top = piece.numel(), max(-low, high)
        total = piece.sum().item()
        squares = self._squares(piece, top)
        spread = squares - total * total / count
        if spread < 1e-3 * squares:  # a mean far from zero has cancelled the digits
            about = torch.sub(piece, total / count, out=self.scratch(piece))
            rest = about.sum().item()
            low_about, high_about = low - total / count, high - total / count
            spread = self._squares_of(about, max(abs(low_about), abs(high_about)))
            spread = max(spread - rest * rest / count, 0.0)
        if low >= 0 or high <= 0:
            absolute = abs(total)
        else:
            absolute = torch.abs(piece, out=self.scratch(piece)).sum().item()
        zeros = 0.0
        if low <= 0 <= high:
            zeros = count - torch.ne(piece, 0, out=self.scratch(piece)).sum().item()
        return zeros, total, absolute, squares, spread

    def _squares_of(self, scratch: Tensor, top: float) -> float:
        """As `_squares`, of what lies in the scratch memory itself."""
        if SMALL < top < LARGE or top == 0.0:
            return scratch.dot(scratch).item()
        scratch.div_(top)
        return scratch.dot(scratch).item() * top * top

    def _varies(self, x: Tensor, squares: float, top: float) -> float:
        samples = x.shape[0]
        means = x.sum(0).reshape(-1) / samples
        between = samples * self._means(means, top)
        varies = 1.0 - between / squares
        if varies < 1e-2:  # what is left of a difference of two large numbers
            about = (x.reshape(samples, -1) - means).reshape(-1)
            varies = self.norm(about)[0] ** 2 / squares
        return varies

    def _means(self, means: Tensor, top: float) -> float:
        if SMALL < top < LARGE:
            return means.dot(means).item()
        means = means / top
        return means.dot(means).item() * top * top


def _ends(row: Tensor) -> tuple[float, float]:
    """Return the smallest and the largest number; NaN for both where any is."""
    low, high = torch.aminmax(row)
    return low.item(), high.item()


def _pieces(one: Tensor, other: Tensor) -> Iterable[tuple[Tensor, Tensor]]:
    if one.numel() <= PIECE:
        return ((one, other),)
    return zip(torch.split(one, PIECE), torch.split(other, PIECE), strict=True)


def _wide(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64


def _gradient_on_device(x: Tensor) -> list[Tensor]:
    bad = (~x.isfinite()).sum()
    norm = torch.linalg.vector_norm(x, dtype=_wide(x))
    return [torch.full_like(bad, x.numel()), bad, norm, x.abs().max()]


def _activation_on_device(x: Tensor, flat_share: Tensor | None) -> list[Tensor]:
    wide, finite = _wide(x), x.isfinite()
    kept = torch.where(finite, x, 0)
    bad = (~finite).sum()
    count = torch.full_like(bad, x.numel())
    done = (count - bad).clamp(min=1)
    total = kept.sum(dtype=wide)
    norm = torch.linalg.vector_norm(kept, dtype=wide)
    about = torch.where(finite, x - (total / done).to(x.dtype), 0)
    nothing = torch.full((), math.nan, device=x.device, dtype=wide)
    varies = nothing
    if x.dim() > 1 and x.shape[0] > 1:
        means = x.sum(0, dtype=wide) / x.shape[0]
        varies = (1 - x.shape[0] * means.square().sum() / norm.square()).clamp(min=0)
    low, high = torch.aminmax(x)
    return [
        count,
        bad,
        (x == -math.inf).sum(),
        (x == 0).sum(),
        total,
        kept.abs().sum(dtype=wide),
        norm,
        torch.linalg.vector_norm(about, dtype=wide).square(),
        low,
        high,
        varies,
        nothing if flat_share is None else flat_share,
    ]

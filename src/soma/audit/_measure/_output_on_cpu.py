"""The numbers of an output on a CPU: by the fewest passes over memory, or with care.

The passes are the cost, so the fast reductions of torch do the work, and the slow ones run only
where the extremes ask for them.
"""

import math

import torch
from torch import Tensor

from soma.audit._measure._layout import Sums
from soma.audit._measure._row_norms import LARGE, PIECE, SMALL, RowNorms, ends
from soma.audit._measure._sample import sampled
from soma.audit._measure._tensors import flat


def quick_output(x: Tensor, sums: Sums | None, rows: RowNorms) -> tuple[float, ...] | None:
    """Return the numbers of an output with the fewest passes; None: `careful_output` must.

    That is so where a number is not finite, very small or very large, or where the mean is far
    from zero, so that the spread would be the difference of two sums that are nearly the same.
    """
    if (some := sampled(x)) is not None:
        return _by_sample(x, some, sums, rows)
    row, samples = flat(x), x.shape[0] if x.dim() > 1 else 1
    low, high, squares = (math.inf, -math.inf, 0.0) if sums is None else sums[:3]
    zeros, absolute, one_sided = 0.0, 0.0, []
    for piece in torch.split(row, PIECE) if row.numel() > PIECE else (row,):
        bottom, top = low, high
        if sums is None:
            bottom, top = ends(piece)
            if not (bottom > -LARGE and top < LARGE and max(-bottom, top) > SMALL):
                return None
            low, high = min(low, bottom), max(high, top)
            squares += piece.dot(piece).item()
        if bottom < 0 < top:
            sizes = torch.abs(piece, out=rows.scratch(piece))
            absolute += sizes.sum().item()
            if sizes.amin().item() > 0.0:
                continue
        else:
            one_sided.append(piece)
        if bottom <= 0 <= top:
            zeros += piece.numel() - torch.ne(piece, 0, out=rows.scratch(piece)).sum().item()
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
            varies = _varies(x, squares, max(-low, high), rows)
    return (
        float(row.numel()), 0.0, 0.0, zeros, total, absolute,
        math.sqrt(squares), spread, low, high, varies,
    )  # fmt: skip


def careful_output(x: Tensor, rows: RowNorms) -> tuple[float, ...]:
    """Return the numbers of any output but its flat share, as `Activation` orders them."""
    row = flat(x)
    found = [0.0] * 7  # bad, masked, zeros, total, absolute, squares, spread
    lows, highs, done = [], [], 0
    for piece in torch.split(row, PIECE) if row.numel() > PIECE else (row,):
        low, high = ends(piece)
        lows.append(low)
        highs.append(high)
        if not math.isfinite(high - low) and not (math.isfinite(low) and math.isfinite(high)):
            kept = piece[piece.isfinite()]
            found[0] += piece.numel() - kept.numel()
            found[1] += (piece == -math.inf).sum().item()
            piece = kept
            if not piece.numel():
                continue
            low, high = ends(piece)
        count = piece.numel()
        zeros, total, absolute, squares, spread = _piece(piece, low, high, rows)
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
        varies = _varies(x, squares, max(-low, high), rows)
    return (
        float(row.numel()), bad, masked, zeros, total, absolute,
        math.sqrt(squares), spread, low, high, varies,
    )  # fmt: skip


def _by_sample(
    x: Tensor, some: Tensor, sums: Sums | None, rows: RowNorms
) -> tuple[float, ...] | None:
    """As `quick_output`, with all but the extremes told by a sample of the output."""
    low, high = sums[:2] if sums is not None else ends(flat(x))
    top = max(-low, high)
    if not (low > -LARGE and high < LARGE and top > SMALL):
        return None
    count, samples = some.numel(), some.shape[0]
    room = rows.scratch(x, 2 * count)
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


def _piece(piece: Tensor, low: float, high: float, rows: RowNorms) -> tuple[float, ...]:
    count, top = piece.numel(), max(-low, high)
    total = piece.sum().item()
    squares = rows.squares(piece, top)
    spread = squares - total * total / count
    if spread < 1e-3 * squares:  # a mean far from zero has cancelled the digits
        about = torch.sub(piece, total / count, out=rows.scratch(piece))
        rest = about.sum().item()
        low_about, high_about = low - total / count, high - total / count
        spread = rows.squares_in_place(about, max(abs(low_about), abs(high_about)))
        spread = max(spread - rest * rest / count, 0.0)
    if low >= 0 or high <= 0:
        absolute = abs(total)
    else:
        absolute = torch.abs(piece, out=rows.scratch(piece)).sum().item()
    zeros = 0.0
    if low <= 0 <= high:
        zeros = count - torch.ne(piece, 0, out=rows.scratch(piece)).sum().item()
    return zeros, total, absolute, squares, spread


def _varies(x: Tensor, squares: float, top: float, rows: RowNorms) -> float:
    """Return the variance over the first axis, over the mean square."""
    samples = x.shape[0]
    means = x.sum(0).reshape(-1) / samples
    between = samples * _means(means, top)
    varies = 1.0 - between / squares
    if varies < 1e-2:  # what is left of a difference of two large numbers
        about = (x.reshape(samples, -1) - means).reshape(-1)
        varies = rows.norm(about)[0] ** 2 / squares
    return varies


def _means(means: Tensor, top: float) -> float:
    if SMALL < top < LARGE:
        return means.dot(means).item()
    means = means / top
    return means.dot(means).item() * top * top

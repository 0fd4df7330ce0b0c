"""Which steps of a long training a record keeps, so that it does not grow without bound.

`_record.py` asks here; the audit itself forgets nothing.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from soma.health import ChannelSnapshot, Step


@dataclass(frozen=True, slots=True)
class Strides:
    """How many steps go together, of which few are kept."""

    steps: int = 1
    snapshots: int = 1  # of channels; a multiple of `steps`

    def whole(self, end: int, *, last: bool) -> int:
        """Return how many of the first `end` steps can be written: those of groups that are full.

        Args:
            last: no step will follow.
        """
        return end if last else end - end % self.snapshots

    def notes(self) -> list[str]:
        """Return what is left out, as notes of the record."""
        said = []
        if self.steps > 1:
            said.append(
                f"to stay small, the record holds one whole step in {self.steps}, and between them "
                "the one with the largest gradient"
            )
        if self.snapshots > 1:
            said.append(
                f"to stay small, the record holds channels once in {self.snapshots} steps, each "
                "with the largest values since"
            )
        return said


def kept_steps(steps: Iterable[Step], strides: Strides) -> dict[int, Step]:
    """Return the steps that are kept of each group.

    They are a whole one, the one of the largest gradient, and the first whose gradient is not
    finite: so no jump and no fault in numbers is lost.
    """
    found: dict[int, Step] = {}
    for _, group in groupby(steps, key=lambda one: one.step // strides.steps):
        mine = list(group)
        whole = (one for one in mine if one.whole and not one.skipped)
        broken = (one for one in mine if not math.isfinite(one.grad_norm))
        finite = (one for one in mine if math.isfinite(one.grad_norm))
        chosen = (
            next(whole, mine[0]),
            next(broken, mine[0]),
            max(finite, key=lambda one: one.grad_norm, default=mine[0]),
        )
        found |= {one.step: one for one in sorted(chosen, key=lambda one: one.step)}
    return found


def pooled_snapshots(
    snapshots: Iterable[ChannelSnapshot], strides: Strides, steps: Iterable[Step]
) -> Iterator[ChannelSnapshot]:
    """Give one snapshot for each group of steps: the last, with the largest values of all.

    A channel that fired in any of them has fired. What comes after a fault in numbers is no part
    of what was before.

    Args:
        steps: those that are kept; a snapshot goes by a whole one of them.
    """
    whole = [one.step for one in steps if one.whole]
    fault = min((one.step for one in steps if not math.isfinite(one.grad_norm)), default=math.inf)
    for (at, _), group in groupby(
        snapshots, key=lambda one: (one.step // strides.snapshots, one.step >= fault)
    ):
        mine = list(group)
        last = mine[-1]
        known = (one for one in whole if at * strides.snapshots <= one <= last.step)
        yield replace(
            last,
            step=max(known, default=last.step),
            largest=_largest([one.largest for one in mine]),
            deviation=rounded(last.deviation),
            gradient=_largest([one.gradient for one in mine]),
        )


def _largest(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the largest of each column, NaN where any is; rows may differ in length."""
    if len(rows) == 1 or len({len(row) for row in rows}) > 1:
        return rounded(rows[-1])
    sums = map(sum, zip(*rows, strict=True))  # NaN where any is, which `max` may pass over
    found = map(max, zip(*rows, strict=True))
    return rounded(one if total == total else total for one, total in zip(found, sums, strict=True))


def rounded(values: Iterable[float]) -> list[float]:
    """Return numbers with five digits: no rule looks closer."""
    return [float(f"{value:.5g}") for value in values]

"""`Budget`: which steps are measured whole, so that an audit stays within its share of the time."""

import math
from statistics import median

FIRST = 64  # steps that are measured whole in any case
_WARM = 8  # of them, those whose time says little
_SECOND = 128  # by this step, what the other steps cost is known too
_FEW = 8  # of them, too few to tell
# Whole steps come an eighth of the way apart until they are `every` steps apart: in a short run
# of a small network the first one after the 64 would else come after its end.
_WIDENING = 8
_HIDDEN = 3.0  # the most that a whole step is taken to cost over the time spent in the audit


class Budget:
    """Watches what the audit costs, and fixes how often it looks closely.

    It does so after the first steps, and once more when it knows what steps cost that are not
    whole: these take a part of the share too, and a whole step is slower than the time spent in
    the audit says, since what the audit reads pushes the network's own data out of the caches.

    Args:
        share: the audit's time over that of everything else, in later steps; None: no limit.
    """

    def __init__(self, share: float | None) -> None:
        if share is not None and not (isinstance(share, int | float) and share > 0):
            raise ValueError(
                f"`budget` is {share!r}; a share of the time above 0, as 0.05, or None is wanted."
            )
        self.every = 1
        self._next = FIRST
        self._share = share
        self._whole: list[tuple[float, float]] = []  # the audit's seconds, and all of them
        self._other: list[tuple[float, float]] = []

    def is_whole(self, step: int) -> bool:
        """Whether every measure is taken in a step."""
        return step < FIRST or step >= self._next

    def note(self, step: int, spent: float, seconds: float) -> None:
        """Take what a step cost: the audit's seconds, and all of them."""
        whole = self.is_whole(step)
        self._take(step, spent, seconds, whole=whole)
        if whole:
            self._next = step + min(self.every, max(1, step // _WIDENING))

    def _take(self, step: int, spent: float, seconds: float, *, whole: bool) -> None:
        if self._share is None or not _WARM <= step < _SECOND:
            return
        if step < FIRST:
            self._whole.append((spent, seconds))
        elif not whole:
            self._other.append((spent, seconds))
        if step == FIRST - 1:
            self.every = max(1, math.ceil(_cost(self._whole) / self._share))
        elif step == _SECOND - 1 and len(self._other) >= _FEW:
            self._look_again(self._share)

    def _look_again(self, share: float) -> None:
        other = _cost(self._other)
        extra = max(_cost(self._whole) - other, 0.0)
        plain = median(seconds - spent for spent, seconds in self._other)
        slower = median(seconds for _, seconds in self._whole) - median(
            seconds for _, seconds in self._other
        )
        seen = max(extra, min(slower / max(plain, 1e-9), _HIDDEN * extra))
        self.every = max(self.every, math.ceil(seen / max(share - other, share / 5)))


def _cost(steps: list[tuple[float, float]]) -> float:
    return median(spent / max(seconds - spent, 1e-9) for spent, seconds in steps)

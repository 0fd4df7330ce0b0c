"""How many steps are measured whole, so that the audit stays within its share of the time."""

import math
from statistics import median

FIRST = 64  # steps that are measured whole in any case
_WARM = 8  # of them, those whose time says little


class Budget:
    """Watches what the audit costs, and fixes once how often it looks closely.

    Args:
        share: the audit's time over that of everything else, in later steps; None: no limit.
    """

    def __init__(self, share: float | None) -> None:
        if share is not None and share <= 0:
            raise ValueError(
                f"`budget` is {share!r}; a share of the time above 0, as 0.05, or None is wanted."
            )
        self.every = 1
        self._share = share
        self._costs: list[float] = []

    def is_whole(self, step: int) -> bool:
        """Whether every measure is taken in a step."""
        return step < FIRST or step % self.every == 0

    def note(self, step: int, spent: float, seconds: float) -> None:
        """Take what a step cost: the audit's seconds, and all of them."""
        if self._share is None or step >= FIRST:
            return
        if step >= _WARM:
            self._costs.append(spent / max(seconds - spent, 1e-9))
        if step == FIRST - 1 and self._costs:
            self.every = max(1, math.ceil(median(self._costs) / self._share))

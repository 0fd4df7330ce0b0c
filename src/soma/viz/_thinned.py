"""Long series, made short enough to draw without losing a peak."""

import math
from collections.abc import Sequence

MOST = 2000  # points of a series


def thinned(values: Sequence[float], most: int = MOST) -> list[int]:
    """Return which of the values to draw, in order: at most `most`.

    Of each stretch it is the least, the greatest and the first that is not finite; the ends
    stay too.
    """
    count = len(values)
    if count <= most:
        return list(range(count))
    each = 2 if all(map(math.isfinite, values)) else 3
    stretches = (most - 2) // each
    kept = {0, count - 1}
    for stretch in range(stretches):
        here = range(stretch * count // stretches, (stretch + 1) * count // stretches)
        finite = [index for index in here if math.isfinite(values[index])]
        if finite:
            kept.add(min(finite, key=values.__getitem__))
            kept.add(max(finite, key=values.__getitem__))
        if len(finite) < len(here):
            kept.add(next(index for index in here if not math.isfinite(values[index])))
    return sorted(kept)

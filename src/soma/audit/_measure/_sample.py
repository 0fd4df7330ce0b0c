"""A sample of a large output on a CPU, which is looked at in place of all of it.

A pass over millions of numbers costs as much as the operation that made them, and a share or a
mean needs no more than some ten thousand of them.
"""

from torch import Tensor

LEAST = 1 << 16  # elements of an output that is not looked at as a whole
_ELEMENTS = 1 << 14
_SAMPLES = 64
_RUN = 32  # elements that lie side by side: two lines of a cache


def sampled(x: Tensor) -> Tensor | None:
    """Return some elements of an output as a view of shape (samples, runs, length).

    The samples are evenly spread, and each is looked at in the same places. These start at
    distances that are no multiple of the length of a row or of a channel. None: the output is
    to be looked at as a whole, since it is small, elsewhere, or not in one piece in memory.
    """
    if x.numel() < LEAST or x.dim() < 2 or not x.is_cpu or not x.is_contiguous():
        return None
    samples, places = x.shape[0], x.stride(0)
    every = max(1, samples // _SAMPLES)
    runs, length = -(-_ELEMENTS // (-(-samples // every) * _RUN)), _RUN
    if 2 * runs * length > places:
        every, runs, length = samples * places // _ELEMENTS, 1, places
        if every < 2:
            return None
    shape, gap = (-(-samples // every), runs, length), (places - length) // max(runs - 1, 1)
    return x.as_strided(shape, (every * places, gap, 1), x.storage_offset())

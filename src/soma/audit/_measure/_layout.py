"""The numbers of an output and of a gradient, in the order in which a row holds them."""

from typing import NamedTuple

from torch import Tensor


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


NORM_OF_ACTIVATION = Activation._fields.index("norm")
NORM_OF_GRADIENT = Gradient._fields.index("norm")


class Sums(NamedTuple):
    """Numbers of all elements of an output, all finite, found while looking at its channels."""

    low: float
    high: float
    squares: float
    spread: float
    by_place: Tensor | None = None  # sums over the first axis

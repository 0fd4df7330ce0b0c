"""Where each rule draws its line. All of them are ratios: no number here has a unit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from soma.errors import InvalidThreshold, did_you_mean, listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The lines that the rules of a verdict draw.

    `soma.explain("VANISHING")` tells which of them a flag depends on.

    >>> Thresholds(leakage=0.9).leakage
    0.9
    """

    vanishing: float = 2e-3  # gradient at a module's output over that at the network's
    vanishing_product: float = 2e-2  # the same, each gradient times what it is the gradient of
    exploding: float = 1e3  # gradient at a module's output over that at the network's
    exploding_jump: float = 1e3  # gradient of a step over the median of all earlier steps
    exploding_run: float = 1e6  # gradient of a step over the median of the whole run
    dead: float = 1e-6  # largest output of a channel over what the activation was given
    dead_samples: float = 16  # values of a channel that must be seen before it is called dead
    ignored: float = 1e-6  # gradient of a channel over that of the largest channel
    saturated: float = 0.7  # share of outputs where the activation is flat
    leakage: float = 0.95  # likeness of two groups of channels, 1 is the same up to a rotation
    patience: float = 3  # steps before what never happened counts as never happening
    lr_high: float = 0.1  # change of the weights over the weights, in the first 8 steps
    lr_high_blind: float = 0.3  # the same where the loss says nothing
    lr_high_fall: float = 0.1  # share of its first value by which a loss has to fall
    lr_low: float = 1e-6  # change of the weights over the weights
    lr_low_gradient: float = 1e-3  # strength of the gradient over the median of all modules
    collapse_from: float = 0.1  # share of an output that differed over the batch at first
    collapse_to: float = 1e-2  # and share that still does
    collapse_spread: float = 0.1  # largest spread of a channel over the one it had at first

    def __new__(cls, **values: Any) -> Self:
        """Refuse names of which no threshold is known."""
        known = [one.name for one in fields(cls)]
        for name in values:
            if name not in known:
                raise InvalidThreshold(
                    f"there is no threshold `{name}`; there are {listing(known)}."
                    f"{did_you_mean(name, known)}"
                )
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or math.isnan(value) or value < 0:
                raise InvalidThreshold(
                    f"threshold `{one.name}` is {value!r}; a number from 0 up is wanted, "
                    f"its default is {one.default!r}."
                )

    @classmethod
    def of(cls, given: "Mapping[str, float] | Thresholds | None") -> "Thresholds":
        """Return thresholds for whatever a caller gave: none, some by name, or all.

        Raises:
            InvalidThreshold: a name that is none, or a value that is no number.
        """
        if given is None:
            return cls()
        if isinstance(given, Thresholds):
            return given
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise InvalidThreshold(
                f"thresholds are {given!r}; a `Thresholds` or a mapping from names to numbers "
                "is wanted."
            )
        return cls(**given)

"""What a plan is for, and so what may be stored while it runs."""

from enum import StrEnum
from typing import NoReturn

from soma.errors import did_you_mean, listing


class CompileMode(StrEnum):
    """What the cache may do for a plan."""

    Inference = "inference"  # states and outputs are stored
    Differentiable = "differentiable"  # states only: a stored output has no history to go back
    NoCache = "no_cache"  # nothing is stored

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        known = [mode.value for mode in cls]
        raise ValueError(
            f"{value!r} is no compile mode; the modes are {listing(known)}."
            f"{did_you_mean(value, known) if isinstance(value, str) else ''}"
        )

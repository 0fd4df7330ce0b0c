"""What is known of one parameter over all steps, and of all parameters in one step.

The former is a `Weight`, the latter `ParameterNorms`; `_weights.py` fills both.
"""

import math
from dataclasses import dataclass, field

from torch import nn

from soma.audit._measure._boards import Row
from soma.audit._parameters._norms import NormRow

Mark = tuple[int, int]  # a tensor's id, and how often it was written to


class Weight:
    """One parameter, and what has ever happened to it."""

    __slots__ = (
        "ever_got",
        "ever_moved",
        "ever_pushed",
        "is_spent",
        "is_stale",
        "latest",
        "measured",
        "norm",
        "parameter",
        "was_away",
    )

    def __init__(self, parameter: nn.Parameter) -> None:
        self.parameter = parameter
        self.latest: Mark | None = None  # its `.grad` after the latest arrival, or step
        self.measured: Mark | None = None  # its `.grad` when it was measured after the backward
        self.is_spent = False  # the optimizer has used what lies in `.grad`
        self.is_stale = False  # `.grad` holds an earlier step's gradient too
        self.ever_got = False  # a gradient
        self.ever_pushed = False  # by a gradient that was not all zero
        self.ever_moved = False  # by an optimizer's step
        # At the start of a step it was elsewhere than at the start of the one before: whatever an
        # optimizer does, somebody may put weights back after it.
        self.was_away = False
        self.norm: float | None = None  # at the start of a step, where no optimizer holds it

    def starts_at(self, index: int, norm: float, norms: "ParameterNorms") -> None:
        """Take the norm at the start of a step; without an optimizer only this tells of a change.

        Args:
            index: of this parameter.
            norm: of its value.
            norms: those of the step.
        """
        if index not in norms.stepped and not self.was_away:
            if self.norm is not None:
                self.was_away = norm != self.norm
                norms.compared.add(index)
            self.norm = norm


@dataclass(slots=True)
class ParameterNorms:
    """The norms of all parameters in one step, in rows that may still be on their device."""

    values: list[NormRow] = field(default_factory=list)  # of the parameters before the step
    after_backward: list[NormRow] = field(default_factory=list)  # of gradients, as it left them
    at_step: list[NormRow] = field(default_factory=list)  # of gradients written to since
    changes: list[NormRow] = field(default_factory=list)  # that the optimizer's step made
    start_changes: list[NormRow] = field(default_factory=list)  # since the start of the step before
    compared: set[int] = field(default_factory=set)  # parameters whose starts were compared
    stepped: set[int] = field(default_factory=set)  # parameters that an optimizer stepped
    stale: set[int] = field(default_factory=set)  # parameters with a gradient of an earlier step
    scale: Row | None = None  # by which a gradient scaler multiplied the loss
    scaled_at_step: bool = False  # and which is still in the gradients of `at_step`
    found_inf: Row | None = None  # a fused optimizer leaves the step out where this is not 0

    @property
    def are_fine(self) -> bool:
        """Whether all gradients are finite, as a backward left them."""
        norms = [norm for _, row in self.after_backward for norm in row.values]
        return all(map(math.isfinite, norms))

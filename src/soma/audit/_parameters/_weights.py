"""`Weights`: every parameter under audit, once, and what is known of it within a step.

*When* a gradient came is told by a hook that fires after it was added to `.grad`; *what* it is
is read from `.grad`, after the backward and again before the optimizer's step where somebody
has written to it in between.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from soma.audit._measure._boards import Row
from soma.audit._measure._measures import Measures
from soma.audit._measure._tensors import is_spread
from soma.audit._parameters._changes import Changes
from soma.audit._parameters._norms import Named, Norms
from soma.audit._step._hooks import Accumulated

if TYPE_CHECKING:
    from soma.audit._step._recorder import Recorder

Mark = tuple[int, int]  # a tensor's id, and how often it was written to


class Weight:
    """One parameter."""

    __slots__ = (
        "ever_got",
        "ever_moved",
        "ever_pushed",
        "is_spent",
        "is_stale",
        "last",
        "left",
        "norm",
        "parameter",
        "was_away",
    )

    def __init__(self, parameter: nn.Parameter) -> None:
        self.parameter = parameter
        self.last: Mark | None = None  # its `.grad` after the latest arrival, or step
        self.left: Mark | None = None  # its `.grad` when it was measured after the backward
        self.is_spent = False  # the optimizer has used what lies in `.grad`
        self.is_stale = False  # `.grad` holds an earlier step's gradient too
        self.ever_got = False
        self.ever_moved = False
        self.ever_pushed = False  # by a gradient that was not all zero
        # At the start of a step it was elsewhere than at the start of the one before: whatever an
        # optimizer does, somebody may put weights back after it.
        self.was_away = False
        self.norm: float | None = None  # at the start of a step, where no optimizer holds it

    def stood(self, index: int, norm: float, numbers: "Numbers") -> None:
        """Take the norm at the start of a step; of what no optimizer holds it tells of changes."""
        if index not in numbers.stepped and not self.was_away:
            if self.norm is not None:
                self.was_away = norm != self.norm
                numbers.compared.add(index)
            self.norm = norm


@dataclass(slots=True)
class Numbers:
    """Norms of one step, by parameter, in rows that may still be on their device."""

    left: list[Named] = field(default_factory=list)
    at_step: list[Named] = field(default_factory=list)
    norms: list[Named] = field(default_factory=list)  # of the parameters
    changes: list[Named] = field(default_factory=list)
    starts: list[Named] = field(default_factory=list)  # changes between starts
    compared: set[int] = field(default_factory=set)  # parameters whose starts were compared
    stepped: set[int] = field(default_factory=set)  # parameters that an optimizer stepped
    stale: set[int] = field(default_factory=set)
    scale: Row | None = None  # that a gradient scaler multiplied the loss by
    found_inf: Row | None = None  # a fused optimizer leaves the step out where this is not 0
    scaled_at_step: bool = False

    @property
    def are_fine(self) -> bool:
        """Whether all gradients that a backward left are finite."""
        return all(math.isfinite(norm) for _, row in self.left for norm in row.values)


class Weights:
    """All parameters."""

    def __init__(self, measures: Measures) -> None:
        self.all: list[Weight] = []
        self.are_spread = False  # over several machines: every one of them must measure
        self._norms = Norms(measures)
        self._changes = Changes(self.all, measures, self._norms)
        self._index: dict[int, int] = {}
        self._hooked: set[int] = set()
        self._late: set[int] = set()  # gradients that a closure brought inside the step

    def add(self, parameter: nn.Parameter) -> int:
        """Return a parameter's index, new or known."""
        index = self._index.get(id(parameter))
        if index is None:
            index = self._index[id(parameter)] = len(self.all)
            self.all.append(Weight(parameter))
            self.are_spread |= is_spread(parameter)
        return index

    def known(self, parameters: Iterable[Tensor]) -> list[int]:
        """Return the indices of those parameters that are under audit."""
        find = self._index.get
        return [at for one in parameters if (at := find(id(one))) is not None]

    def attach(self, recorder: "Recorder", stack: ExitStack) -> None:
        """Put a hook on every parameter that asks for a gradient and has none yet."""
        for index, weight in enumerate(self.all):
            parameter = weight.parameter
            if index in self._hooked or not parameter.requires_grad or is_lazy(parameter):
                continue
            if parameter.is_leaf:
                self._hooked.add(index)
                hook = Accumulated(recorder, index)
                handle = parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
                stack.callback(handle.remove)
                # An optimizer that steps in such a hook clears the gradient: be there first.
                hooks = cast(OrderedDict[int, object], parameter._post_accumulate_grad_hooks)
                hooks.move_to_end(handle.id, last=False)

    def arrived(self, index: int) -> None:
        """Note that a gradient was added to a parameter's `.grad`."""
        weight = self.all[index]
        mark = _mark(weight.parameter.grad)
        weight.is_stale = (
            weight.last is not None
            and mark == (weight.last[0], weight.last[1] + 1)  # it was added to what was there
            and (weight.is_stale or weight.is_spent)
        )
        weight.is_spent = False
        weight.last = mark

    def measure(self, indices: Iterable[int], numbers: Numbers) -> None:
        """Measure gradients as they are now, in the middle of a backward."""
        self._gradients(numbers.left, indices)

    def is_of_interest(self, index: int) -> bool:
        """Whether somebody else acts on a parameter's gradient as soon as it is there."""
        return len(self.all[index].parameter._post_accumulate_grad_hooks or ()) > 1

    def were_cleared(self, indices: Iterable[int]) -> bool:
        """Whether all gradients that came in a step are gone without a step."""
        some = False
        for index in indices:
            weight, some = self.all[index], True
            gradient = weight.parameter.grad
            if gradient is None:
                continue
            if _mark(gradient) == weight.left or gradient.is_sparse or gradient.any():
                return False
        return some

    def after_backward(self, indices: Iterable[int], numbers: Numbers) -> None:
        """Measure the gradients as a backward has left them."""
        self._gradients(numbers.left, indices)
        self._late.update(indices)

    def before_step(self, own: Sequence[int], arrived: set[int], numbers: Numbers) -> None:
        """Measure the gradients as the optimizer finds them, where they differ from before."""
        numbers.stepped.update(own)
        self._late.clear()
        self._as_used([index for index in own if index in arrived], numbers)

    def _as_used(self, fresh: Sequence[int], numbers: Numbers) -> None:
        numbers.stale.update(index for index in fresh if self.all[index].is_stale)
        changed = [
            index
            for index in fresh
            if (gradient := self.all[index].parameter.grad) is not None
            and (id(gradient), gradient._version) != self.all[index].left
        ]
        if changed:
            left = {index: self.all[index].left for index in changed}
            self._gradients(numbers.at_step, changed)
            for index, mark in left.items():
                self.all[index].left = mark

    def keep(self, own: Sequence[int], numbers: Numbers) -> None:
        """Measure all parameters, and keep the values of those that are about to change."""
        known = {index for indices, _ in numbers.norms for index in indices}
        trainable = [index for index in own if self.all[index].parameter.requires_grad]
        for indices, row in self._changes.keep(trainable, numbers):
            if not known.issuperset(indices):
                numbers.norms.append((indices, row))
                known.update(indices)
        missing = [
            index
            for index, weight in enumerate(self.all)
            if index not in known and not is_lazy(weight.parameter)
        ]
        self._norms.put(numbers.norms, missing, [self.all[index].parameter for index in missing])

    def after_step(self, own: Sequence[int], numbers: Numbers, *, whole: bool) -> None:
        """Measure what the step has changed; gradients that lie there from now on are spent."""
        # Inside a closure gradients come, and may be clipped, after `before_step` has looked.
        self._as_used([index for index in own if index in self._late], numbers)
        self._late.clear()
        for index in own:
            weight = self.all[index]
            weight.is_spent = True
            weight.last = _mark(weight.parameter.grad)
        self._changes.take(own, numbers, whole=whole)

    def let_go(self) -> None:
        """Free the values that were kept."""
        self._changes.forget()

    def _gradients(self, rows: list[Named], indices: Iterable[int]) -> None:
        found, gradients = [], []
        for index in indices:
            weight = self.all[index]
            gradient = weight.parameter.grad
            if gradient is not None:
                weight.left = (id(gradient), gradient._version)
                found.append(index)
                gradients.append(gradient)
        self._norms.put(rows, found, gradients)


def _mark(tensor: Tensor | None) -> Mark | None:
    return None if tensor is None else (id(tensor), tensor._version)

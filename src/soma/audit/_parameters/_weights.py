"""`Weights`: every parameter under audit, once; measures its gradients, value and change in a step.

A hook tells when a gradient came: it fires after the gradient was added to `.grad`. The gradient
is then read from `.grad` after the backward, and once more before the optimizer's step if it has
been written to in between, as by clipping. `_weight.py` says what is kept, `_changes.py` goes on
with what the optimizer's step changes.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import cast

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from soma.audit._measure._measures import Measures
from soma.audit._measure._tensors import is_spread
from soma.audit._parameters._changes import Changes
from soma.audit._parameters._norms import NormRow, Norms
from soma.audit._parameters._weight import Mark, ParameterNorms, Weight


class Weights:
    """All parameters under audit; each goes by its index here."""

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

    def attach(self, hook: Callable[[int], Callable[[Tensor], None]], stack: ExitStack) -> None:
        """Put a hook on every parameter that asks for a gradient and has none yet.

        Args:
            hook: makes it for the parameter of an index.
            stack: takes them off when it is closed.
        """
        for index, weight in enumerate(self.all):
            parameter = weight.parameter
            if index in self._hooked or not parameter.requires_grad or is_lazy(parameter):
                continue
            if parameter.is_leaf:
                self._hooked.add(index)
                handle = parameter.register_post_accumulate_grad_hook(hook(index))  # type: ignore[no-untyped-call]
                stack.callback(handle.remove)
                # An optimizer that steps in such a hook clears the gradient: be there first.
                hooks = cast(OrderedDict[int, object], parameter._post_accumulate_grad_hooks)
                hooks.move_to_end(handle.id, last=False)

    def arrived(self, index: int) -> None:
        """Note that a gradient was added to a parameter's `.grad`."""
        weight = self.all[index]
        mark = _mark(weight.parameter.grad)
        weight.is_stale = (
            weight.latest is not None
            and mark == (weight.latest[0], weight.latest[1] + 1)  # it was added to what was there
            and (weight.is_stale or weight.is_spent)
        )
        weight.is_spent = False
        weight.latest = mark

    def measure(self, indices: Iterable[int], norms: ParameterNorms) -> None:
        """Measure gradients as they are now, in the middle of a backward."""
        self._gradients(norms.after_backward, indices)

    def has_other_hooks(self, index: int) -> bool:
        """Whether other hooks act on a parameter's gradient as soon as it is there."""
        return len(self.all[index].parameter._post_accumulate_grad_hooks or ()) > 1

    def were_cleared(self, indices: Iterable[int]) -> bool:
        """Whether all gradients that came in a step are gone without a step."""
        some = False
        for index in indices:
            weight, some = self.all[index], True
            gradient = weight.parameter.grad
            if gradient is None:
                continue
            if _mark(gradient) == weight.measured or gradient.is_sparse or gradient.any():
                return False
        return some

    def after_backward(self, indices: Iterable[int], norms: ParameterNorms) -> None:
        """Measure the gradients as a backward has left them."""
        self._gradients(norms.after_backward, indices)
        self._late.update(indices)

    def before_step(self, own: Sequence[int], arrived: set[int], norms: ParameterNorms) -> None:
        """Measure the gradients as the optimizer finds them, where they differ from before."""
        norms.stepped.update(own)
        self._late.clear()
        self._as_used([index for index in own if index in arrived], norms)

    def _as_used(self, fresh: Sequence[int], norms: ParameterNorms) -> None:
        norms.stale.update(index for index in fresh if self.all[index].is_stale)
        changed = [
            index
            for index in fresh
            if (gradient := self.all[index].parameter.grad) is not None
            and (id(gradient), gradient._version) != self.all[index].measured
        ]
        if changed:
            measured = {index: self.all[index].measured for index in changed}
            self._gradients(norms.at_step, changed)
            for index, mark in measured.items():
                self.all[index].measured = mark

    def keep(self, own: Sequence[int], norms: ParameterNorms) -> None:
        """Measure all parameters, and keep the values of those that are about to change."""
        known = {index for indices, _ in norms.values for index in indices}
        trainable = [index for index in own if self.all[index].parameter.requires_grad]
        for indices, row in self._changes.keep(trainable, norms):
            if not known.issuperset(indices):
                norms.values.append((indices, row))
                known.update(indices)
        missing = [
            index
            for index, weight in enumerate(self.all)
            if index not in known and not is_lazy(weight.parameter)
        ]
        self._norms.put(norms.values, missing, [self.all[index].parameter for index in missing])

    def after_step(self, own: Sequence[int], norms: ParameterNorms, *, whole: bool) -> None:
        """Measure what the step has changed; gradients that lie there from now on are spent."""
        # Inside a closure gradients come, and may be clipped, after `before_step` has looked.
        self._as_used([index for index in own if index in self._late], norms)
        self._late.clear()
        for index in own:
            weight = self.all[index]
            weight.is_spent = True
            weight.latest = _mark(weight.parameter.grad)
        self._changes.take(own, norms, whole=whole)

    def let_go(self) -> None:
        """Free the values that were kept."""
        self._changes.forget()

    def _gradients(self, rows: list[NormRow], indices: Iterable[int]) -> None:
        found, gradients = [], []
        for index in indices:
            weight = self.all[index]
            gradient = weight.parameter.grad
            if gradient is not None:
                weight.measured = (id(gradient), gradient._version)
                found.append(index)
                gradients.append(gradient)
        self._norms.put(rows, found, gradients)


def _mark(tensor: Tensor | None) -> Mark | None:
    return None if tensor is None else (id(tensor), tensor._version)

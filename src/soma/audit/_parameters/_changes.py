"""`Changes`: what an optimizer's step changes in parameters, from copies taken before it.

Small ones on a CPU are measured together, large ones by `_large_changes.py`, and all others, such
as those that are spread over several machines, with operations that any tensor knows.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from soma.audit._measure._boards import Row
from soma.audit._measure._measures import Measures
from soma.audit._measure._tensors import is_usual
from soma.audit._parameters._large_changes import LEAST, LargeChanges
from soma.audit._parameters._norms import NormRow, Norms
from soma.audit._parameters._weight import ParameterNorms, Weight


class Changes:
    """The values of parameters before a step, and where they had been a step earlier."""

    def __init__(self, weights: list[Weight], measures: Measures, norms: Norms) -> None:
        self._weights = weights
        self._norms = norms
        self._large = LargeChanges(measures)
        self._before: dict[int, Tensor] = {}  # values before the optimizer's step
        self._kept: dict[int, str] = {}  # how each parameter was kept in this step

    def keep(self, indices: Sequence[int], step: ParameterNorms) -> Iterator[NormRow]:
        """Keep the values of parameters; give the norms that copying them gives at no cost."""
        groups = _by_kind(indices, [self._weights[index].parameter for index in indices])
        for kind, group in groups.items():
            self._kept.update(dict.fromkeys(group, kind))
        if small := groups["small"]:
            yield small, self._keep_small(small, step)
        if large := groups["large"]:
            norms = self._large.keep({at: self._weights[at].parameter for at in large})
            for index in large:
                self._weights[index].was_away = self._large.was_away(index)
                if self._large.was_compared(index):
                    step.compared.add(index)
            yield large, Row(norms)
        for index in groups["rest"]:
            value = self._weights[index].parameter.detach()
            before = self._before.get(index)
            if before is not None and self._is_in_question(index, before, value):
                self._norms.put(step.start_changes, [index], [torch.sub(value, before)])
                step.compared.add(index)
            self._before[index] = value.clone()

    def _keep_small(self, indices: Sequence[int], step: ParameterNorms) -> Row:
        """Keep values in memory that is the same in each step."""
        values = [self._weights[index].parameter.detach() for index in indices]
        rooms = []
        for index, value in zip(indices, values, strict=True):
            room = self._before.get(index)
            if room is not None and self._is_in_question(index, room, value):
                self._weights[index].was_away = not torch.equal(room, value)
                step.compared.add(index)
            if room is None or not _are_alike(room, value):
                room = self._before[index] = torch.empty_like(value)
            rooms.append(room)
        torch._foreach_copy_(rooms, values)
        return self._norms.of(rooms)

    def _is_in_question(self, index: int, before: Tensor, value: Tensor) -> bool:
        """Whether a parameter might start each step at the same place.

        Each is looked at until it has once been elsewhere, as nearly all are in the second step.
        """
        return not self._weights[index].was_away and _are_alike(before, value)

    def take(self, indices: Sequence[int], step: ParameterNorms, *, whole: bool) -> None:
        """Measure what a step has changed in those parameters that were kept."""
        groups: dict[str, list[int]] = {kind: [] for kind in ("large", "moving", "small", "rest")}
        for index in indices:
            kind = self._kept.pop(index, None)
            if kind == "small" and self._weights[index].was_away:
                kind = "moving"
            if kind is not None and whole:
                groups[kind].append(index)
        if large := groups["large"]:
            norms = self._large.change({at: self._weights[at].parameter for at in large})
            step.changes.append((large, Row(norms)))
        if moving := groups["moving"]:
            # Nobody asks again where these were: the change takes the place of the value.
            rooms = [self._before[index] for index in moving]
            torch._foreach_sub_(rooms, self._values(moving))
            step.changes.append((moving, self._norms.of(rooms)))
        for others in (groups["small"], groups["rest"]):
            if others:
                before = [self._before[index] for index in others]
                changes = torch._foreach_sub(self._values(others), before)
                self._norms.put(step.changes, others, changes)

    def _values(self, indices: Sequence[int]) -> list[Tensor]:
        return [self._weights[index].parameter.detach() for index in indices]

    def forget(self) -> None:
        """Free the values that were kept."""
        self._before.clear()
        self._kept.clear()
        self._large.forget()


def _are_alike(before: Tensor, value: Tensor) -> bool:
    """Whether the difference of two tensors can be taken."""
    return (before.shape, before.dtype) == (value.shape, value.dtype)


def _by_kind(indices: Sequence[int], parameters: Sequence[Tensor]) -> dict[str, list[int]]:
    """Sort parameters by how a change is measured: with others, by a sample, or each for itself."""
    found: dict[str, list[int]] = {"small": [], "large": [], "rest": []}
    for index, one in zip(indices, parameters, strict=True):
        usual = one.is_cpu and is_usual(one)
        found["rest" if not usual else "large" if one.numel() >= LEAST else "small"].append(index)
    return found

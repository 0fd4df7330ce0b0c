"""`Norms`: the norms of many tensors, with as few calls as their kinds allow."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from soma.audit._measure._boards import Row
from soma.audit._measure._measures import Measures
from soma.audit._measure._row_norms import LARGE, SMALL
from soma.audit._measure._tensors import flat, is_spread, is_usual, plain

_MANY = 1 << 22  # of one whose squares are summed up exactly enough by a single product
_FEW = 1 << 15  # elements of a tensor that is measured together with others

NormRow = tuple[Sequence[int], Row]  # the indices of parameters, and a norm for each


class Norms:
    """Takes norms of tensors of any kind, each under the number of its parameter."""

    def __init__(self, measures: Measures) -> None:
        self._measures = measures

    def put(self, rows: list[NormRow], indices: Iterable[int], tensors: Iterable[Tensor]) -> None:
        """Put a row of norms for each group of tensors that can be measured at once."""
        usual: tuple[list[int], list[Tensor]] = [], []
        groups: dict[object, tuple[list[int], list[Tensor]]] = {}
        for index, tensor in zip(indices, tensors, strict=True):
            if tensor.is_cpu and is_usual(tensor):
                usual[0].append(index)
                usual[1].append(tensor.detach())
                continue
            spread = is_spread(tensor)
            usable = tensor.detach() if spread or is_usual(tensor) else plain(tensor)
            if usable is not None:
                names, values = groups.setdefault((spread, usable.device), ([], []))
                names.append(index)
                values.append(usable)
        for names, values in (usual, *groups.values()):
            if names:
                rows.append((names, self.of(values)))

    def of(self, tensors: list[Tensor]) -> Row:
        """Return the norms of tensors of one device, real and dense, or all spread over several."""
        if is_spread(tensors[0]):
            # One collective for all of them.
            norms = torch.stack(torch._foreach_norm(tensors))
            return self._measures.boards.put(norms.full_tensor())  # type: ignore[attr-defined]
        if tensors[0].device.type != "cpu":
            wide = None if tensors[0].device.type == "mps" else torch.float64
            return self._measures.boards.put(torch.stack(torch._foreach_norm(tensors, dtype=wide)))
        return Row(
            [
                norm if SMALL < norm < LARGE or _is_nothing(tensor, norm) else self._scaled(tensor)
                for tensor, norm in zip(tensors, quick_norms(tensors), strict=True)
            ]
        )

    def _scaled(self, tensor: Tensor) -> float:
        return self._measures.norm(flat(tensor))[0]


def _is_nothing(tensor: Tensor, norm: float) -> bool:
    return norm == 0.0 and tensor.numel() < 2  # of more elements the squares may have vanished


def quick_norms(tensors: list[Tensor]) -> list[float]:
    """Return norms of tensors on a CPU, wrong where they are very small or large."""
    found: dict[int, float] = {}
    few: list[Tensor] = []
    for at, tensor in enumerate(tensors):
        if _FEW < tensor.numel() <= _MANY:
            row = flat(tensor)
            found[at] = math.sqrt(row.dot(row).item())
        else:
            few.append(tensor)
    rest = (one.item() for one in torch._foreach_norm(few)) if few else iter(())
    return [found[at] if at in found else next(rest) for at in range(len(tensors))]

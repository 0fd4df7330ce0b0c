"""Norms of many tensors at once, against each one's own."""

import pytest
import torch

from soma.audit._measure._boards import Row
from soma.audit._measure._measures import Measures
from soma.audit._parameters._norms import Norms

RANDOM = torch.randn(300, 300, generator=torch.Generator().manual_seed(0))
TENSORS = [
    RANDOM,
    RANDOM.T,
    RANDOM[::2, ::3],
    RANDOM[0] * 1e-30,
    RANDOM * 1e30,
    RANDOM.double(),
    RANDOM.bfloat16(),
    torch.zeros(5),
    torch.zeros(0),
    torch.tensor(-3.0),
    RANDOM[:2].to_sparse(),
    torch.complex(RANDOM[0], RANDOM[1]),
]


def found_in(tensors: list[torch.Tensor]) -> dict[int, float]:
    """Return the norms by number, out of whatever rows they were put in."""
    rows: list[tuple[list[int], Row]] = []
    Norms(Measures()).put(rows, range(len(tensors)), tensors)
    return {at: norm for indices, row in rows for at, norm in zip(indices, row.values, strict=True)}


def test_all_kinds_together() -> None:
    """Each tensor has its norm, whatever its kind, size and scale, under its own number."""
    found = found_in(TENSORS)
    truth = [one.to_dense() if one.is_sparse else one for one in TENSORS]
    truth = [one.to(torch.complex128 if one.is_complex() else torch.float64) for one in truth]
    assert [found[at] for at in range(len(TENSORS))] == pytest.approx(
        [float(torch.linalg.vector_norm(one)) for one in truth], rel=1e-5
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("size", [3, 40_000])
def test_what_is_not_finite(bad: float, size: int) -> None:
    """It shows in the norm of its tensor, and in no other."""
    x = torch.ones(size)
    x[-1] = bad
    found = found_in([torch.ones(4), x])
    assert found == pytest.approx({0: 2.0, 1: bad}, nan_ok=True)

"""What a step changes in large parameters, where a sample speaks for most of them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import soma
from soma.audit import Audit
from tests.audit.loops import values

STEPS = 40


def trained(
    loss: Callable[[nn.Parameter, int], Tensor], rate: Callable[[int], float]
) -> tuple[Audit, list[float], list[float]]:
    """Train one large parameter; return its audit, its norms and what steps changed in truth."""
    torch.manual_seed(0)
    module = nn.Linear(384, 400, bias=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    norms, changes = [], []
    with soma.audit_modules({"m": module}, optimizer, budget=None) as audit:
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rate(step)
            optimizer.zero_grad()
            module(torch.randn(2, 384))
            loss(module.weight, step).backward()
            before = module.weight.detach().clone()
            optimizer.step()
            norms.append(before.double().norm().item())
            changes.append((module.weight.detach() - before).double().norm().item())
    return audit, norms, changes


def test_a_sample_tells_norms() -> None:
    """Of a parameter that moves everywhere, norms are near the truth, and at first the truth."""
    audit, norms, changes = trained(
        lambda weight, step: ((weight - step / 10) * torch.randn_like(weight)).square().sum(),
        lambda step: 0.01,
    )
    assert values(audit, "m", "param_norm") == pytest.approx(norms, rel=0.05)
    assert values(audit, "m", "update_norm") == pytest.approx(changes, rel=0.05)
    assert values(audit, "m", "update_norm")[:8] == pytest.approx(changes[:8], rel=1e-4)


def test_what_a_sample_would_miss() -> None:
    """Where a step moves single elements, or other rows each time, all of it is looked at."""
    single, _, changes = trained(lambda weight, step: weight[3, 5] * 2, lambda step: 0.1)
    assert values(single, "m", "update_norm") == pytest.approx(changes, rel=1e-3)
    assert set(values(single, "m", "moved")) == {1.0}
    rows, _, changes = trained(
        lambda weight, step: weight[torch.randint(400, (4,))].square().sum(), lambda step: 0.1
    )
    assert values(rows, "m", "update_norm") == pytest.approx(changes, rel=1e-3)


def test_a_parameter_that_stops() -> None:
    """A parameter that stops moving, and one that goes on in a single row, are told apart."""
    audit, _, _ = trained(
        lambda weight, step: weight.square().sum(), lambda step: 0.01 if step < 20 else 0.0
    )
    assert values(audit, "m", "moved") == [1.0] * 20 + [0.0] * 20
    audit, _, changes = trained(
        lambda weight, step: (weight if step < 20 else weight[1]).square().sum(),
        lambda step: 0.01,
    )
    assert values(audit, "m", "update_norm")[21:] == pytest.approx(changes[21:], rel=1e-3)


def test_a_parameter_that_is_given_other_memory() -> None:
    """What a step changes is seen where the values lie now, and not where they did."""

    def moved_away(weight: nn.Parameter, step: int) -> Tensor:
        if step in (15, 25):
            old = weight.data
            weight.data = old.T.contiguous().T if step == 15 else old.clone()
            old.zero_()
        return (weight - step).square().sum()

    audit, norms, changes = trained(moved_away, lambda step: 0.01)
    assert values(audit, "m", "param_norm") == pytest.approx(norms, rel=0.05)
    assert values(audit, "m", "update_norm") == pytest.approx(changes, rel=0.05)

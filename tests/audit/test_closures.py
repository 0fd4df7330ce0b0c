"""Optimizers that run the backward themselves, as training libraries have them do it."""

from contextlib import suppress

import pytest
import torch
from torch import nn

import soma
from soma.audit import Audit
from tests.audit.loops import X


def trained(*, closure: bool, sick_at: int = -1) -> Audit:
    """Train five steps with clipping, inside the optimizer's step or before it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    with soma.audit_modules({"m": model}, optimizer, inside=True, budget=None) as audit:
        for step in range(5):

            def run(step: int = step) -> torch.Tensor:
                optimizer.zero_grad()
                if step == sick_at:
                    nn.init.constant_(model[2].bias, torch.nan)
                loss = (model(X) * 10).square().mean()
                loss.backward()
                audit.look_in_closure()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                return loss

            if not closure:
                run()
            optimizer.step(run if closure else None)
    return audit


def test_a_closure_is_measured_like_a_loop() -> None:
    """All numbers are the same, the norm after clipping included."""
    inside, before = (trained(closure=one).measurements for one in (True, False))

    assert inside.series == before.series
    assert [one.grad_norm_at_step for one in inside.steps] == pytest.approx([0.5] * 5)


def test_a_nan_in_a_closure_has_an_origin() -> None:
    """It is looked for before the optimizer uses the gradient."""
    (origin,) = trained(closure=True, sick_at=3).measurements.origins

    assert (origin.step, origin.unit, origin.phase) == (3, "m/2", "weights")


@pytest.mark.parametrize(("loss", "steps"), [(1.0, 2), (torch.nan, 3)])
def test_an_error_takes_back_half_a_step(loss: float, steps: int) -> None:
    """What an error breaks off before the optimizer is no step, unless its gradient is NaN."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with suppress(KeyboardInterrupt), soma.audit_modules(model, optimizer) as audit:
        for step in range(3):
            optimizer.zero_grad()
            (model(X).square().mean() * (loss if step == 2 else 1.0)).backward()
            if step == 2:
                raise KeyboardInterrupt
            optimizer.step()

    assert audit.report().n_steps == steps

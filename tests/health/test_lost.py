"""When a training cannot recover."""

from math import inf, nan

import pytest

from soma.health import Measurements, Step, lost


def steps(*norms: float, skipped: bool = False) -> Measurements:
    """Measurements of steps with these gradient norms."""
    return Measurements(
        steps=[
            Step(
                step=number, whole=True, skipped=skipped, loss=None, grad_norm=norm,
                grad_norm_at_step=norm, output_grad_norm=1.0, output_norm=1.0, stale=False,
            )
            for number, norm in enumerate(norms)
        ]
    )  # fmt: skip


@pytest.mark.parametrize("bad", [nan, inf])
def test_a_gradient_that_is_not_finite_ends_it(bad: float) -> None:
    """Once the optimizer has used it, the weights are NaN."""
    assert lost(steps(1.0, bad, 1.0)) == (
        "at step 1 the optimizer used a gradient that is not finite, so weights are NaN from there "
        "on"
    )


def test_a_step_that_a_scaler_left_out_ends_nothing() -> None:
    """The scaler halves its factor, and the training goes on."""
    assert lost(steps(nan, nan, skipped=True)) is None


def test_five_steps_without_any_gradient_end_it() -> None:
    """Four may be a pause; zeros that are over are forgotten."""
    assert lost(steps(1.0, 0.0, 0.0, 0.0, 0.0)) is None
    assert lost(steps(0.0, 0.0, 0.0, 0.0, 0.0, 1.0)) is None
    assert "since step 1" in str(lost(steps(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)))

"""Can a training still recover? Two cases where it certainly cannot."""

from math import isfinite

from soma.health._measurements import Measurements

IDLE_STEPS = 5


def lost(measurements: Measurements) -> str | None:
    """Return why nothing that follows can lower the loss any more; None: it may.

    Either the optimizer has used a gradient that is not finite, so that weights are NaN from
    then on, or every gradient has been exactly zero for five steps in a row: every path is dead.
    """
    taken = [step for step in measurements.steps if not step.skipped]
    for step in taken:
        if not isfinite(step.grad_norm_at_step):
            return (
                f"at step {step.step} the optimizer used a gradient that is not finite, so weights "
                "are NaN from there on"
            )
    last = taken[-IDLE_STEPS:]
    if len(last) == IDLE_STEPS and all(step.grad_norm == 0.0 for step in last):
        return (
            f"the gradient of every parameter has been exactly zero since step {last[0].step}, so "
            "no step changes anything"
        )
    return None

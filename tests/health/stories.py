"""Runs with one fault each, whose whole text a test knows."""

from collections.abc import Callable

from soma.health import Measurements, Origin, Series
from tests.health.hand import STEPS, activation, layers, measured, snapshots, step, unit

ZERO = {"out_grad_norm": 0.0, "moved": 0.0, "param_grad_norm": 0.0, "grad_strength": 0.0}
NONE = {"out_grad_norm": None, "param_grad_norm": None, "grad_strength": None,
        "update_ratio": None, "moved": 0.0, "grads": 0.0}  # fmt: skip
RELU = [layers()[0], unit("net/a", 1), unit("net/b", 2),
        activation("net/r", 3), unit("net/c", 4, feeds_output=True)]  # fmt: skip


def staircase() -> Measurements:
    """Two layers that starve one after the other."""
    units = [layers()[0], unit("net/a", 1, class_name="Block", source="model.py:42"),
             *layers()[2:]]  # fmt: skip
    return measured(
        {"net/a": {"out_grad_norm": 1e-5}, "net/b": {"out_grad_norm": 1e-3}}, units=units
    )


def times_zero() -> Measurements:
    """A branch that joins the rest times 0."""
    return snapshots(measured({"net/a": ZERO}), "net/a", gradient=(0, 0, 0, 0))


def dead_layer() -> Measurements:
    """An activation that gives nothing, with all that starves above it."""
    found = measured({"net/a": ZERO, "net/b": ZERO}, units=RELU)
    return snapshots(found, "net/r", largest=(0, 0, 0, 0), input_rms=2.5)


def dead_channel() -> Measurements:
    """One channel that never fires."""
    return snapshots(measured(units=RELU), "net/r", largest=(2, 0, 2, 2), input_rms=2.5)


def ignored_channels() -> Measurements:
    """Two channels that are sliced away."""
    return snapshots(measured(), "net/b", gradient=(1, 1, 0, 0))


def saturated_tanh() -> Measurements:
    """A tanh that is flat nearly everywhere."""
    tanh = activation("net/t", 3, "tanh", class_name="Tanh")
    return measured({"net/t": {"saturated_frac": 0.93}}, units=[*RELU[:3], tanh, RELU[4]])


def leak() -> Measurements:
    """Two groups that say the same."""
    found = measured()
    series = Series(steps=list(range(STEPS)), values=[0.2, *[0.997] * (STEPS - 1)])
    found.similarity["net/b"] = {("audio", "text"): series}
    return found


def no_optimizer() -> Measurements:
    """A layer that no optimizer holds."""
    return measured({"net/c": {"moved": 0.0, "update_ratio": 0.0}})


def detached() -> Measurements:
    """Two layers before a detach."""
    return measured({"net/a": NONE, "net/b": NONE})


def too_fast() -> Measurements:
    """Steps of half the weights, and a loss that stays."""
    return measured({id: {"update_ratio": 0.5} for id in ("net/a", "net/b", "net/c")})


def too_slow() -> Measurements:
    """One layer at a rate of its own."""
    return measured({"net/a": {"update_ratio": 2e-8, "update_norm": 6e-8}})


def log_of_zero() -> Measurements:
    """A NaN that the loss made of a zero."""
    bad = [0.0] * 5 + [1.0] * 3
    peak = [1.0] * 5 + [float("nan")] * 3
    found = measured(
        {id: {"out_grad_bad_frac": bad, "out_grad_max": peak} for id in ("net/b", "net/c")}
    )
    found.origins.append(
        Origin(
            step=5, unit=None, operation="log", phase="loss", value="nan", detail="log(0) of 3 rows"
        )
    )
    return found


def collapsed() -> Measurements:
    """A representation that loses its variance in step 3."""
    return measured({"net/b": {"batch_variance_ratio": [0.6] * 3 + [1e-3] * (STEPS - 3)}})


def jump() -> Measurements:
    """A step that is far stronger than all before."""
    strong = [1.0] * (STEPS - 1) + [2e6]
    return measured({"net": {"param_grad_norm": strong, "grad_strength": strong}})


def compiled() -> Measurements:
    """Two modules that could not be looked into."""
    hidden = [unit(f"net/{name}", at, unobserved="compiled") for at, name in ((3, "d"), (4, "e"))]
    return measured(units=[*layers()[:3], *hidden])


def nothing() -> Measurements:
    """An audit in which no step ran."""
    return measured(steps=[])


def well() -> Measurements:
    """A run without a fault, with a note of the audit."""
    found = measured(steps=[step(at) for at in range(3)])
    found.notes.append("one weight is in two optimizers")
    return found


STORIES: tuple[Callable[[], Measurements], ...] = (
    staircase, times_zero, dead_layer, dead_channel, ignored_channels, saturated_tanh, leak,
    no_optimizer, detached, too_fast, too_slow, log_of_zero, collapsed, jump, compiled, nothing,
    well,
)  # fmt: skip

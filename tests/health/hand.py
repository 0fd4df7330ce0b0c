"""Measurements made by hand: a healthy chain of three layers, and what a test changes in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from soma.health import ChannelSnapshot, Measurements, Series, Step, Unit, judge

STEPS = 8
WELL = {
    "act_norm": 5.0,
    "act_mean_abs": 0.5,
    "batch_variance_ratio": 0.6,
    "out_grad_norm": 0.5,
    "param_norm": 3.0,
    "param_grad_norm": 0.5,
    "grad_strength": 1.5,
    "update_norm": 0.01,
    "update_ratio": 1e-3,
    "calls": 1.0,
    "grads": 1.0,
    "moved": 1.0,
}
WITHOUT_WEIGHTS = ("act_norm", "act_mean_abs", "batch_variance_ratio", "out_grad_norm", "calls")


def unit(id: str, order: int, **changes: Any) -> Unit:
    """Return a unit with parameters of its own, as a layer has."""
    node, _, path = id.partition("/")
    fields: dict[str, Any] = {
        "class_name": "Linear", "source": "", "parameters": 10, "trainable": 10,
        "own_trainable": 10, "activation": None, "feeds_output": False, "channels": 4,
        "channel_axis": 1,
    }  # fmt: skip
    return Unit(id=id, node=node, path=path, order=order, **{**fields, **changes})


def activation(id: str, order: int, kind: str = "relu", **changes: Any) -> Unit:
    """Return a unit without parameters whose output went through an activation."""
    bare = {"class_name": "ReLU", "parameters": 0, "trainable": 0, "own_trainable": 0}
    return unit(id, order, activation=kind, **{**bare, **changes})


def step(at: int, **changes: Any) -> Step:
    """Return a step in which the network's output got a gradient of 1."""
    fields: dict[str, Any] = {
        "whole": True, "skipped": False, "loss": 1.0, "grad_norm": 1.0, "grad_norm_at_step": 1.0,
        "output_grad_norm": 1.0, "output_norm": 10.0, "stale": False,
    }  # fmt: skip
    return Step(step=at, **{**fields, **changes})


def layers() -> list[Unit]:
    """Return a node with three layers, the last of which gives the network's output."""
    return [
        unit("net", 0, class_name="Net", trainable=30, own_trainable=0, feeds_output=True),
        unit("net/a", 1),
        unit("net/b", 2),
        unit("net/c", 3, feeds_output=True),
    ]


def measured(
    changes: Mapping[str, Mapping[str, float | Sequence[float] | None]] | None = None,
    *,
    units: Sequence[Unit] | None = None,
    steps: Sequence[Step] | None = None,
) -> Measurements:
    """Return a run in which all is well but what `changes` says, by unit and number.

    A number stands for each step, a sequence for the steps one by one, None for never measured.
    """
    steps = [step(at) for at in range(STEPS)] if steps is None else steps
    units = layers() if units is None else units
    found = Measurements(units={one.id: one for one in units}, steps=list(steps))
    for one in units:
        usual = {k: v for k, v in WELL.items() if one.trainable or k in WITHOUT_WEIGHTS}
        for name, value in {**usual, **(changes or {}).get(one.id, {})}.items():
            if value is None or (one.order < 0 and name not in (changes or {}).get(one.id, {})):
                continue
            values = [value] * len(steps) if isinstance(value, int | float) else list(value)
            series = Series(steps=[s.step for s in steps][: len(values)], values=values)
            found.series.setdefault(one.id, {})[name] = series
    return found


def snapshots(
    found: Measurements,
    id: str,
    *,
    largest: Sequence[float] = (2, 2, 2, 2),
    deviation: Sequence[float] = (1, 1, 1, 1),
    gradient: Sequence[float] = (1, 1, 1, 1),
    input_rms: float | None = None,
    samples: int = 64,
) -> Measurements:
    """Add the same numbers of a unit's channels to each step."""
    found.channels[id] = [
        ChannelSnapshot(
            step=one.step, largest=largest, deviation=deviation, gradient=gradient,
            input_rms=input_rms, samples=samples,
        )
        for one in found.steps
    ]  # fmt: skip
    return found


def flags(found: Measurements, **thresholds: float) -> dict[str, list[str]]:
    """Return the flags of each unit that has some."""
    return {row.filter_id: row.flags for row in judge(found, thresholds).filters if row.flags}

"""Runs with an audit in them, made by hand: a chain of layers with the faults that a test wants."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from soma import RunView, track_run
from soma.core import FlowEdge, FlowNode, ModuleFlow
from soma.health import (
    ChannelSnapshot,
    Measurements,
    Series,
    Step,
    Unit,
    judge,
    measurements_to_rows,
    rollup,
)
from soma.tracking import GraphRecord, NodeRecord

STEPS = 12
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J$e$"


def chain(
    layers: int, *, node: str = "net", shrinks: float = 0.8, steps: int = STEPS, dead: int = 0
) -> Measurements:
    """Return an audit of a node of so many layers, each followed by nothing.

    Args:
        shrinks: what is left of the gradient at each layer above.
        dead: channels of the first layer that never fire.
    """
    found = Measurements(steps=[_step(at) for at in range(steps)])
    ids = [f"{node}/layers.{number}" for number in range(layers)]
    found.units[node] = _unit(node, layers, feeds_output=True, children=tuple(ids))
    for number, id in enumerate(ids):
        last = number == layers - 1
        relu = {"activation": "relu"} if number == 0 and dead else {}
        found.units[id] = _unit(id, number, feeds_output=last, **relu)
        gradient = shrinks ** (layers - 1 - number)
        found.series[id] = _numbers(gradient, steps)
    found.series[node] = _numbers(1.0, steps)
    if not ids:
        return found
    found.channels[ids[0]] = [_snapshot(at, dead) for at in range(0, steps, 2)]
    found.correlation[ids[0]] = _correlation(dead)
    found.correlation_channels[ids[0]] = [*range(8)]
    found.series[ids[0]]["effective_rank"] = Series(steps=[0, 2, 4], values=[6.0, 5.5, 5.0])
    return found


def grouped(measured: Measurements, likeness: float, names: tuple[str, str]) -> Measurements:
    """Give the first layer two groups of channels that are so alike."""
    id = next(id for id in measured.channels)
    groups = {names[0]: (0, 1, 2, 3), names[1]: (4, 5, 6, 7)}
    old = measured.units[id]
    fields = {name: getattr(old, name) for name in Unit.__dataclass_fields__}
    measured.units[id] = Unit(**{**fields, "groups": groups})
    steps = [one.step for one in measured.channels[id]]
    measured.similarity[id] = {names: Series(steps=steps, values=[likeness] * len(steps))}
    return measured


def audited(root: Path, measured: Measurements, name: str = "audited") -> RunView:
    """Return a run that holds an audit, a graph of its nodes, and their insides."""
    nodes = list(dict.fromkeys(unit.node for unit in measured.units.values()))
    with track_run(name, root=root) as run:
        run.record_graph(
            GraphRecord(
                name="model",
                nodes=tuple(
                    NodeRecord(id=node, class_name="Net", kind="trainable", has_module=True,
                               parameters=10, trainable=10, config={}, doc="")
                    for node in nodes
                ),
                edges=(),
            )
        )  # fmt: skip
        run.record_modules([_flow(measured, node) for node in nodes])
    write_audit(run.dir, measured)
    return RunView(run.dir)


def write_audit(folder: Path, measured: Measurements) -> None:
    """Write what was measured as an audit does."""
    rows = [json.dumps(_plain(row), allow_nan=False) for row in measurements_to_rows(measured)]
    (folder / "diagnostics").mkdir(exist_ok=True)
    (folder / "diagnostics" / "audit.jsonl").write_text("".join(f"{row}\n" for row in rows))


def write_flags(folder: Path, measured: Measurements, **thresholds: float) -> None:
    """Write the verdict as an audit does at its end."""
    flags = rollup(judge(measured, thresholds))
    kept = {"format": 1, "flags": flags, "thresholds": thresholds}
    (folder / "diagnostics").mkdir(exist_ok=True)
    (folder / "diagnostics" / "health.json").write_text(json.dumps(_plain(kept)))


def _unit(id: str, order: int, **changes: Any) -> Unit:
    node, _, path = id.partition("/")
    fields: dict[str, Any] = {
        "class_name": "Linear", "source": "", "parameters": 10, "trainable": 10,
        "own_trainable": 10, "activation": None, "feeds_output": False, "channels": 8,
        "channel_axis": 1,
    }  # fmt: skip
    return Unit(id=id, node=node, path=path, order=order, **{**fields, **changes})


def _step(at: int) -> Step:
    return Step(step=at, whole=True, skipped=False, loss=1.0 / (at + 1), grad_norm=1.0,
                grad_norm_at_step=1.0, output_grad_norm=1.0, output_norm=10.0,
                stale=False)  # fmt: skip


def _numbers(gradient: float, steps: int) -> dict[str, Series]:
    values = {
        "act_norm": 5.0, "act_mean_abs": 0.5, "act_std": 0.4, "batch_variance_ratio": 0.6,
        "out_grad_norm": gradient, "param_norm": 3.0, "param_grad_norm": gradient,
        "grad_strength": 3.0 * gradient, "update_norm": 0.01, "update_ratio": 1e-3, "calls": 1.0,
        "grads": 1.0, "moved": 1.0, "grads_ever": 1.0, "moved_ever": 1.0, "pushed_ever": 1.0,
    }  # fmt: skip
    return {
        name: Series(steps=[*range(steps)], values=[value] * steps)
        for name, value in values.items()
    }


def _snapshot(at: int, dead: int) -> ChannelSnapshot:
    largest = [0.0] * dead + [2.0 - 0.1 * number for number in range(8 - dead)]
    deviation = [0.0] * dead + [1.0] * (8 - dead)
    return ChannelSnapshot(step=at, largest=largest, deviation=deviation, gradient=[1.0] * 8,
                           input_rms=1.0, samples=64)  # fmt: skip


def _correlation(dead: int) -> list[list[float]]:
    def one(row: int, column: int) -> float:
        if min(row, column) < dead:
            return math.nan
        return 1.0 if row == column else math.cos(row + column)

    return [[one(row, column) for column in range(8)] for row in range(8)]


def _flow(measured: Measurements, node: str) -> ModuleFlow:
    paths = [unit.path for unit in measured.units.values() if unit.node == node and unit.path]
    layers = [
        FlowNode(id=path, kind="module", label="Linear", path=path, parameters=10, trainable=10,
                 shape=(4, 8), detail="", share=1.0)
        for path in paths
    ]  # fmt: skip
    edges = tuple(
        FlowEdge(source=one, target=other, cut=None, share=1.0) for one, other in pairwise(paths)
    )
    return ModuleFlow(node=node, class_name="Net", parameters=10, trainable=10, calls=1,
                      nodes=tuple(layers), edges=edges, note=None)  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a value with the strings that files hold for what is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value

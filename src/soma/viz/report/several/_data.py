"""What a program reads out of a report of several runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from soma.draw import shortened
from soma.viz.report._data import FORMAT, curve_data
from soma.viz.report._head import told
from soma.viz.report.several._facts import MOST_METRICS, RunsFacts
from soma.viz.report.several._one import OneRun

_MOST_VALUE = 300  # columns of a param that is no number


def runs_data(facts: RunsFacts, left_out: Sequence[str]) -> dict[str, Any]:
    """Return the whole of a report as data, the runs in the order of its table."""
    drawn = {id(run) for run in facts.drawn}
    return {
        "format": FORMAT,
        "made_at": facts.made_at,
        "left_out": list(left_out),
        "goal": None if facts.goal is None else asdict(facts.goal),
        "runs": [_run(run, facts, with_points=id(run) in drawn) for run in facts.runs],
    }


def _run(run: OneRun, facts: RunsFacts, *, with_points: bool) -> dict[str, Any]:
    names = [name for name in facts.shared[:MOST_METRICS] if name in run.curves]
    return {
        "id": run.id,
        "name": run.manifest.name,
        "kind": run.manifest.kind,
        "tags": list(run.manifest.tags),
        "params": {name: _param(value) for name, value in run.manifest.params.items()},
        "created_at": run.manifest.created_at,
        "ended_at": run.standing.ended_at,
        "state": run.standing.state,
        "error": run.standing.error,
        "health": {
            "word": run.health.word,
            "steps": run.health.steps,
            "count": run.health.found,
            "findings": [
                {"flag": one.flag, "unit": one.unit, "since": one.since,
                 "certainty": one.certainty, "why": one.why}
                for one in run.health.faults
            ],
        },
        "metrics": {
            name: (numbers._asdict() if (numbers := run.numbers(name)) else {})
            | (curve_data(run.curves[name]) if with_points else {})
            for name in names
        },
    }  # fmt: skip


def _param(value: object) -> object:
    plain = value is None or isinstance(value, bool | int | float)
    return value if plain else shortened(told(value), _MOST_VALUE)

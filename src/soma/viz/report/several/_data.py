"""What a program reads out of a report of several runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from soma.draw import shortened
from soma.viz.report._data import FORMAT, curve_data, inert_json
from soma.viz.report._head import told
from soma.viz.report.several._facts import MOST_METRICS, RunsFacts
from soma.viz.report.several._one import OneRun

_MOST_VALUE = 300  # columns of a text
_MOST_TEXT = 1_000_000  # characters of all runs together
_MOST_TAGS = 24
LONG = ("params", "error", "health", "metrics")


def runs_told(facts: RunsFacts) -> list[dict[str, Any]]:
    """Return each run as data, in the order of the table; the last ones shorter, if texts are long.

    A short one lacks its params, error, health and metrics.
    """
    drawn = {id(run) for run in facts.drawn}
    runs = [_run(run, facts, with_points=id(run) in drawn) for run in facts.runs]
    room = _MOST_TEXT
    for at, run in enumerate(runs):
        room -= len(inert_json(run))
        if room < 0:
            runs[at] = {name: value for name, value in run.items() if name not in LONG}
    return runs


def runs_data(
    facts: RunsFacts, runs: Sequence[dict[str, Any]], left_out: Sequence[str]
) -> dict[str, Any]:
    """Return the whole of a report as data."""
    return {
        "format": FORMAT,
        "made_at": facts.made_at,
        "left_out": list(left_out),
        "goal": None if facts.goal is None else asdict(facts.goal),
        "runs": list(runs),
    }


def _run(run: OneRun, facts: RunsFacts, *, with_points: bool) -> dict[str, Any]:
    names = [name for name in facts.shared[:MOST_METRICS] if name in run.curves]
    return {
        "id": run.id,
        "name": shortened(run.manifest.name, _MOST_VALUE),
        "kind": run.manifest.kind,
        "tags": list(run.manifest.tags[:_MOST_TAGS]),
        "params": {name: _param(value) for name, value in run.manifest.params.items()},
        "created_at": run.manifest.created_at,
        "ended_at": run.standing.ended_at,
        "state": run.standing.state,
        "error": None if run.standing.error is None else shortened(run.standing.error, _MOST_VALUE),
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

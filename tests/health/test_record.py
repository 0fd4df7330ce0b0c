"""Measurements as rows and back."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from soma.errors import InvalidMeasurements
from soma.health import (
    Measurements,
    Origin,
    Series,
    judge,
    measurements_from_rows,
    measurements_to_rows,
)
from tests.health.hand import STEPS, measured, snapshots


def full() -> Measurements:
    """A run with something of each kind."""
    found = snapshots(measured({"net/a": {"out_grad_norm": 1e-6}}), "net/b", input_rms=1.0)
    found.similarity["net/a"] = {("x", "y"): Series(steps=[0, 4], values=[0.5, math.nan])}
    found.correlation["net/b"] = [[1.0, 0.5], [0.5, 1.0]]
    found.correlation_channels["net/b"] = [0, 2]
    found.origins.append(
        Origin(step=7, unit=None, operation="log", phase="loss", value="nan", detail="log(0)")
    )
    found.notes.append("one layer is shared")
    found.every = 3
    return found


def as_lines(found: Measurements, after: int = -1) -> list[Any]:
    """Return the rows after a way through strict JSON, as a run directory has them."""
    return [strict(json.loads(json.dumps(row))) for row in measurements_to_rows(found, after=after)]


def strict(value: Any) -> Any:
    """Return data with strings for numbers that are not finite."""
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    if isinstance(value, list):
        return [strict(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def test_a_verdict_from_the_record_is_the_same() -> None:
    """Rows through JSON give equal findings, metrics and facts."""
    found = full()

    assert repr(judge(measurements_from_rows(as_lines(found)))) == repr(judge(found))


def test_rows_come_back_as_they_were() -> None:
    """Writing what was read gives the same rows."""
    rows = as_lines(full())

    assert as_lines(measurements_from_rows(rows)) == rows


def test_a_record_is_appended_step_by_step() -> None:
    """Rows written at two times give what rows written at once do."""
    found = full()
    early = full()
    early.steps = early.steps[:4]
    first = [row for row in as_lines(early) if row.get("step", 0) < 4]

    again = measurements_from_rows([*first, *as_lines(found, after=3)])

    assert repr(judge(again)) == repr(judge(found))


def bad_rows() -> Iterator[object]:
    """Rows that a crash, a bug or an enemy could leave."""
    yield from (None, [], 7, "text", {}, {"kind": "later"}, {"kind": ["unit"]})
    yield {"kind": "unit", "id": "x"}
    yield {"kind": "step", "step": -5}
    yield {"kind": "step", "step": True}
    yield {"kind": "numbers", "unit": "net/a", "step": 1, "values": {"x": "1.0"}}
    yield {"kind": "numbers", "unit": "net/a", "step": 10**30, "values": {"x": 1.0}}
    yield {"kind": "numbers", "unit": 3, "step": 1, "values": {}}
    yield {"kind": "numbers", "unit": "net/a", "step": 1, "values": []}
    yield {"kind": "channels", "unit": "net/a", "step": 1, "largest": [0] * 70_000}
    uneven = {"largest": [], "deviation": [1.0] * 4, "gradient": [1.0] * 4, "input_rms": 1.0}
    yield {"kind": "channels", "unit": "net/a", "step": 3, **uneven}
    yield {"kind": "similarity", "unit": "net/a", "groups": ["a"], "step": 1, "value": 1}
    yield {"kind": "correlation", "unit": "net/a", "rows": 3, "channels": []}
    yield {"kind": "origin", "step": 1, "phase": "dream"}


@pytest.mark.parametrize("bad", list(bad_rows()), ids=repr)
def test_a_bad_row_spoils_no_other(bad: object) -> None:
    """What cannot be read is left out, and counted if it claims to be ours."""
    found = full()
    rows: list[object] = as_lines(found)
    again = measurements_from_rows([*rows[:3], bad, *rows[3:]])

    assert judge(again).findings == judge(found).findings


def test_rows_that_cannot_be_read_are_counted() -> None:
    """The number stands in the notes of the report."""
    again = measurements_from_rows([*as_lines(full()), 7, {"kind": "step"}])

    assert again.notes == ["one layer is shared", "2 rows of the record could not be read"]


def test_unknown_fields_are_left_alone() -> None:
    """A later version may add a field to a row."""
    rows = [{**row, "colour": "blue"} for row in as_lines(full())]

    assert repr(measurements_from_rows(rows)) == repr(measurements_from_rows(as_lines(full())))


def test_a_newer_format_is_refused() -> None:
    """Numbers that may mean something else are not judged."""
    with pytest.raises(InvalidMeasurements, match="has format 2; this soma reads up to 1"):
        measurements_from_rows([{"kind": "audit", "format": 2, "every": 1, "notes": []}])


def test_rows_in_any_order_give_series_in_order() -> None:
    """Series are sorted by step, the last of equals counting."""
    rows = [
        {"kind": "numbers", "unit": "a", "step": at, "values": {"x": float(at + k)}}
        for k, at in enumerate((3, 1, 3))
    ]

    series = measurements_from_rows(rows).series["a"]["x"]
    assert (series.steps, series.values) == ([1, 3], [2.0, 5.0])


def test_the_record_has_a_row_for_each_step_and_unit() -> None:
    """Rows do not grow with the number of metrics."""
    kinds = [row["kind"] for row in measurements_to_rows(measured())]

    assert kinds.count("numbers") == 4 * STEPS

"""Measurements as flat rows for JSON lines, and back, without torch.

A run directory appends such rows while it trains; the reader takes what it understands, counts
what it does not, and gives up on nothing but a format that is newer than itself. Numbers that
are not finite may come as floats or as the strings that the writer makes of them.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, TypeVar

from soma.errors import InvalidMeasurements
from soma.health._measurements import (
    ChannelSnapshot,
    Measurements,
    Origin,
    Series,
    Step,
    Unit,
)

_FORMAT = 1
_MOST_ROWS = 5_000_000  # of a file; each unit writes one or two a step
_MOST_UNITS = 100_000
_MOST_VALUES = 65_536  # of one list in a row, as the channels of a unit
_MOST_CORRELATED = 1_024  # channels of a correlation
_LONGEST = 4_096  # characters of a string
_MOST_NOTES = 100
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Row = dict[str, Any]
T = TypeVar("T")


def measurements_to_rows(measured: Measurements, *, after: int = -1) -> Iterator[Row]:
    """Return measurements as flat mappings of plain data, the steps `after` one only.

    Units and what is known of the whole come each time: the last row of its kind counts.
    """
    yield {"kind": "audit", "format": _FORMAT, "every": measured.every, "notes": measured.notes}
    for unit in measured.units.values():
        yield {"kind": "unit", **asdict(unit)}
    for step in measured.steps:
        if step.step > after:
            yield {"kind": "step", **asdict(step)}
    for id, named in measured.series.items():
        yield from _numbers(id, named, after)
    for id, seen in measured.channels.items():
        for one in seen:
            if one.step > after:
                yield {"kind": "channels", "unit": id, **_lists(one)}
    for id, groups in measured.similarity.items():
        for pair, series in groups.items():
            for at, value in zip(series.steps, series.values, strict=True):
                if at > after:
                    yield {
                        "kind": "similarity", "unit": id, "groups": list(pair),
                        "step": at, "value": value,
                    }  # fmt: skip
    for id, rows in measured.correlation.items():
        channels = measured.correlation_channels.get(id, [])
        yield {"kind": "correlation", "unit": id, "channels": channels, "rows": rows}
    for origin in measured.origins:
        if origin.step > after:
            yield {"kind": "origin", **asdict(origin)}


def _numbers(id: str, named: Mapping[str, Series], after: int) -> Iterator[Row]:
    """Return one row for each step of a unit."""
    steps: dict[int, dict[str, float]] = {}
    for name, series in named.items():
        for at, value in zip(series.steps, series.values, strict=True):
            if at > after:
                steps.setdefault(at, {})[name] = value
    for at in sorted(steps):
        yield {"kind": "numbers", "unit": id, "step": at, "values": steps[at]}


def _lists(one: ChannelSnapshot) -> Row:
    """Return a snapshot as a mapping; `asdict` would copy number by number."""
    data = {name: getattr(one, name) for name in _CHANNELS}
    return {k: v if isinstance(v, int | float | None) else list(v) for k, v in data.items()}


def measurements_from_rows(rows: Iterable[object]) -> Measurements:
    """Return the measurements that rows tell of; rows that tell nothing are counted in `notes`.

    Raises:
        InvalidMeasurements: the rows are of a newer format.
    """
    measured = Measurements()
    steps: dict[int, Step] = {}
    bad = 0
    for row in islice(rows, _MOST_ROWS):
        try:
            _take(measured, steps, row)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as problem:
            if isinstance(problem, InvalidMeasurements):
                raise
            bad += 1
    measured.steps = [steps[at] for at in sorted(steps)]
    _sort(measured)
    if bad:
        measured.notes = [*measured.notes, f"{bad} rows of the record could not be read"]
    return measured


def _take(measured: Measurements, steps: dict[int, Step], row: object) -> None:
    """Take what one row tells."""
    if not isinstance(row, Mapping):
        raise TypeError("a mapping is wanted")
    match row.get("kind"):
        case "audit":
            _take_audit(measured, row)
        case "unit":
            unit = _made(Unit, row, _UNIT)
            if unit.id in measured.units or len(measured.units) < _MOST_UNITS:
                measured.units[unit.id] = unit
        case "step":
            step = _made(Step, row, _STEP)
            steps[step.step] = step
        case "numbers":
            at, named = _count(row["step"]), measured.series.setdefault(_text(row["unit"]), {})
            for name, value in row["values"].items():
                _put(named.setdefault(_text(name), Series()), at, _number(value))
        case "channels":
            seen = measured.channels.setdefault(_text(row["unit"]), [])
            one = _made(ChannelSnapshot, row, _CHANNELS)
            count = len(one.largest)
            # Without a backward there are no gradients.
            if len(one.deviation) != count or len(one.gradient) not in (0, count):
                raise ValueError("as many numbers of each kind are wanted")
            seen[:] = [*(other for other in seen if other.step != one.step), one]
        case "similarity":
            first, second = map(_text, row["groups"])
            pairs = measured.similarity.setdefault(_text(row["unit"]), {})
            series = pairs.setdefault((first, second), Series())
            _put(series, _count(row["step"]), _number(row["value"]))
        case "correlation":
            id, matrix = _text(row["unit"]), _many(_many(_number))(row["rows"])
            if len(measured.correlation) < _MOST_UNITS and len(matrix) <= _MOST_CORRELATED:
                measured.correlation[id] = [list(line) for line in matrix]
                measured.correlation_channels[id] = list(_many(_count)(row["channels"]))
        case "origin":
            origin = _made(Origin, row, _ORIGIN)
            if origin not in measured.origins:
                measured.origins.append(origin)


def _take_audit(measured: Measurements, row: Mapping[str, Any]) -> None:
    version = row["format"]
    if type(version) is int and version > _FORMAT:
        raise InvalidMeasurements(
            f"the record of the audit has format {version}; this soma reads up to {_FORMAT}. "
            "Read it with the soma that wrote it, or a newer one."
        )
    measured.every = max(_count(row["every"]), 1)
    measured.notes = [_text(one) for one in row["notes"][:_MOST_NOTES]]


def _put(series: Series, at: int, value: float) -> None:
    if series.steps and series.steps[-1] == at:
        series.values[-1] = value
        return
    series.steps.append(at)
    series.values.append(value)


def _sort(measured: Measurements) -> None:
    """Bring everything into the order of steps, the last of equals counting."""
    every = [one for named in measured.series.values() for one in named.values()]
    every += [one for pairs in measured.similarity.values() for one in pairs.values()]
    for series in every:
        if series.steps != sorted(set(series.steps)):
            values = dict(zip(series.steps, series.values, strict=True))
            series.steps = sorted(values)
            series.values = [values[at] for at in series.steps]
    for seen in measured.channels.values():
        seen.sort(key=lambda one: one.step)


def _made(kind: Callable[..., T], row: Mapping[str, Any], readers: Mapping[str, Any]) -> T:
    """Make a dataclass of the fields of a row that it knows; fields with defaults may lack."""
    return kind(**{name: read(row[name]) for name, read in readers.items() if name in row})


def _number(value: object) -> float:
    if isinstance(value, str):
        return _NOT_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number is wanted")
    return float(value)


def _count(value: object) -> int:
    if type(value) is not int or not -1 <= value < 2**53:
        raise TypeError("a whole number is wanted")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a string is wanted")
    return value[:_LONGEST]


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false is wanted")
    return value


def _one_of(*known: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in known:
            raise ValueError(f"one of {known} is wanted")
        return str(value)

    return read


def _or_none(read: Callable[[object], T]) -> Callable[[object], T | None]:
    return lambda value: None if value is None else read(value)


def _many(read: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    def read_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list | tuple) or len(value) > _MOST_VALUES:
            raise TypeError("a list of bounded length is wanted")
        return tuple(read(one) for one in value)

    return read_all


def _groups(value: object) -> dict[str, tuple[int, ...]]:
    if not isinstance(value, Mapping):
        raise TypeError("a mapping is wanted")
    return {_text(name): _many(_count)(channels) for name, channels in value.items()}


_UNIT: dict[str, Callable[[object], object]] = {
    "id": _text, "node": _text, "path": _text, "class_name": _text, "source": _text,
    "order": _count, "parameters": _count, "trainable": _count, "own_trainable": _count,
    "activation": _or_none(_text), "feeds_output": _truth,
    "shares_output": _truth, "children": _many(_text),
    "channels": _or_none(_count), "channel_axis": _or_none(_count), "groups": _groups,
    "unobserved": _or_none(_text), "weights_of": _or_none(_text),
}  # fmt: skip
_STEP: dict[str, Callable[[object], object]] = {
    "step": _count, "whole": _truth, "skipped": _truth, "loss": _or_none(_number),
    "grad_norm": _number, "grad_norm_at_step": _number, "output_grad_norm": _number,
    "output_norm": _number, "stale": _truth,
}  # fmt: skip
_CHANNELS: dict[str, Callable[[object], object]] = {
    "step": _count, "largest": _many(_number), "deviation": _many(_number),
    "gradient": _many(_number), "input_rms": _or_none(_number), "samples": _count,
}  # fmt: skip
_ORIGIN: dict[str, Callable[[object], object]] = {
    "step": _count, "unit": _or_none(_text), "operation": _text,
    "phase": _one_of("forward", "backward", "loss", "data", "weights"),
    "value": _one_of("nan", "inf"), "detail": _text,
}  # fmt: skip

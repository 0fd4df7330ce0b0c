"""Reads the lines of `events.jsonl`, `metrics.jsonl` and `sinks.jsonl`, whatever they hold."""

from typing import Any

from msgspec import convert

from soma.core import Diagnostic
from soma.files import parse_json
from soma.tracking._lines import NodeLine, decode_metric
from soma.tracking._numbers import as_step, number_in

_NUMBERS = ("loss", "validation_loss")  # of an event, where a string may stand for a number


def point_of(line: bytes) -> tuple[str, int, float, float] | None:
    """Return name, step, value and time of the point that a line holds; None if it holds none."""
    try:
        found = decode_metric(line)
        return found.name, as_step(found.step, found.name), number_in(found.value), found.time
    except (ValueError, RecursionError):  # `InvalidInput` is one
        return None


def diagnostic_of(line: bytes) -> Diagnostic | None:
    """Return the diagnostic that a line holds; None if it holds none."""
    try:
        return convert(parse_json(line), Diagnostic)
    except ValueError:
        return None


def event_of(line: bytes) -> dict[str, Any] | None:
    """Return the event that a line holds; None if it holds none."""
    try:
        value = parse_json(line)
        if not isinstance(value, dict) or not isinstance(value.get("event"), str):
            return None
        return value | {name: number_in(value[name]) for name in _NUMBERS if value.get(name)}
    except (ValueError, TypeError):
        return None


def node_line_of(line: bytes) -> NodeLine | None:
    """Return the turn of a node that a line holds; None if it holds none."""
    event = event_of(line)
    try:
        return None if event is None or event["event"] != "node" else convert(event, NodeLine)
    except ValueError:
        return None

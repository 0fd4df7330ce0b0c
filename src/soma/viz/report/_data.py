"""What a program reads out of a report: JSON in the element `soma-data`, with a format number.

Numbers that are not finite are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`.
"""

import json
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from soma.health import AuditReport, Measurements
from soma.tracking import numbers_out
from soma.viz._conversation import ConversationEntry
from soma.viz._verdict_data import verdict_data
from soma.viz.figures import Curve
from soma.viz.report._facts import Facts

FORMAT = 1  # a reader that knows it finds what `report_data` names; later ones may add more

MOST_MODULES = 200  # of an audit, whose numbers are kept here, and as many findings
_DIGITS = 9  # as many as single precision has
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def report_data(facts: Facts, left_out: Iterable[str]) -> dict[str, Any]:
    """Return the whole of a report as data."""
    manifest, standing = facts.manifest, facts.standing
    return {
        "format": FORMAT,
        "run": {
            **to_builtins(manifest),
            "id": facts.id,
            "state": standing.state,
            "error": standing.error,
            "ended_at": standing.ended_at,
        },
        "made_at": facts.made_at,
        "left_out": list(left_out),
        "events": dict(facts.happened),
        "graph": to_builtins(facts.graph),
        "nodes": to_builtins([*facts.timings.values()]),
        "cache": to_builtins([*facts.activity.values()]),
        "modules": to_builtins(facts.modules),
        "metrics": {
            curve.name: curve_data(curve) for group in facts.curves.groups for curve in group.curves
        },
        "conversation": [*map(entry_data, facts.told.entries)],
        "usage": to_builtins(facts.usage),
        "diagnostics": to_builtins(facts.diagnostics),
        "health": [dict(flag) for flag in facts.flags],
        "audit": None if facts.verdict is None else _audit(facts.verdict, facts.measured),
    }


def inert_json(value: object) -> Markup:
    """Return JSON that ends no element and begins none, whatever is in it."""
    text = json.dumps(numbers_out(value), separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPED))  # noqa: S704 - nothing of markup is left in it


def _audit(verdict: AuditReport, measured: Measurements | None) -> dict[str, Any]:
    """Return the verdict, with the medians of what was measured of each module."""
    whole = [] if measured is None else [one.step for one in measured.steps if one.whole]
    return verdict_data(verdict, MOST_MODULES) | {
        "measured_whole": len(whole),
        "notes": [] if measured is None else list(measured.notes),
    }


def entry_data(entry: ConversationEntry) -> dict[str, Any]:
    """Return an entry of a conversation, without what there is nothing to say of."""
    known: dict[str, Any] = {
        "kind": entry.kind,
        "at": entry.at,
        "node": entry.node,
        "turn": entry.turn,
        "who": entry.who,
        "text": entry.text,
        "outcome": entry.outcome,
        "problem": entry.problem,
        "calls": to_builtins(entry.calls),
        "call": to_builtins(entry.call),
        "labels": [*entry.labels],
        "where": entry.where,
        "tokens": [entry.usage.input_tokens, entry.usage.output_tokens],
        "start": _rounded(entry.start),
        "seconds": None if entry.seconds is None else _rounded(entry.seconds),
    }
    spare: tuple[Any, ...] = (None, "", [], [0, 0])
    return {name: value for name, value in known.items() if value not in spare}


def curve_data(curve: Curve) -> dict[str, Any]:
    """Return the points of a curve that are in the file, and how many were logged."""
    return {
        "logged": curve.logged,
        "step": [int(step) if step.is_integer() else step for step in curve.steps],
        "value": [_rounded(value) for value in curve.values],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")

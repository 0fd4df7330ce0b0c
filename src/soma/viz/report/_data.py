"""What a program reads out of a report: JSON in the element `soma-data`, with a format number.

Numbers that are not finite are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`.
"""

import json
from collections.abc import Iterable, Mapping
from math import isfinite, isnan
from typing import Any

from markupsafe import Markup
from msgspec import to_builtins

from soma.viz.figures import Curve
from soma.viz.report._facts import Facts

FORMAT = 1  # a reader that knows it finds what `report_data` names; later ones may add more

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
            curve.name: _points(curve) for group in facts.curves.groups for curve in group.curves
        },
        "diagnostics": to_builtins(facts.diagnostics),
        "health": [dict(flag) for flag in facts.flags],
    }


def inert_json(value: object) -> Markup:
    """Return JSON that ends no element and begins none, whatever is in it."""
    text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPED))  # noqa: S704 - nothing of markup is left in it


def _points(curve: Curve) -> dict[str, Any]:
    return {
        "logged": curve.logged,
        "step": [int(step) if step.is_integer() else step for step in curve.steps],
        "value": [_rounded(value) for value in curve.values],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _finite(value: Any) -> Any:
    """Return a value with strings for the numbers that JSON does not know."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value

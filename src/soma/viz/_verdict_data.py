"""A verdict as plain data, for programs: `soma judge --json` and the data of a report."""

from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite, isnan
from typing import Any

from soma.health import AuditReport

_DIGITS = 6


def verdict_data(report: AuditReport, most: int | None = None) -> dict[str, Any]:
    """Return a verdict as mappings and lists.

    Args:
        most: modules, and findings, that are told of, the worst findings first; None: all.
    """
    return {
        "steps": report.n_steps,
        "healthy": report.is_healthy(),
        "findings": [asdict(one) for one in report.findings[:most]],
        "modules": [
            {
                "id": row.filter_id,
                "flags": list(row.flags),
                "status": row.status,
                "steps": row.n_steps,
                "metrics": {name: _rounded(value) for name, value in row.metrics.items()},
            }
            for row in report.filters[:most]
        ],
    }


def finite(value: Any) -> Any:
    """Return a value with the strings of a run's files for the numbers that JSON does not know."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(name): finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")

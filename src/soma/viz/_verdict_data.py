"""A verdict as plain data, for programs: `soma judge --json` and the data of a report."""

from dataclasses import asdict
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


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")

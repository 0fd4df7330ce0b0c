"""Judges what an audit measured: numbers to findings, without torch.

`judge`, `_judge.py`, is a pure function of `Measurements` and `Thresholds`. It makes a `Facts` of
them, `_facts.py`, which each rule in `rules/` is asked with. What comes out is shown by
`AuditReport`, `_report.py`. `HealthRecord` does the same for a run's directory; it is loaded
late, for what it reads with.

A new flag is a file in `rules/`, its lines in `rules/_registry.py` and its place in
`_severity.py`; if it can follow from other flags, `_causes.py` says so.
"""

from typing import TYPE_CHECKING

from soma import _extras
from soma.health._explain import explain, flags
from soma.health._explanation import Explanation
from soma.health._finding import Certainty, FilterReport, Finding, Verdict
from soma.health._judge import judge
from soma.health._lost import lost
from soma.health._measurements import (
    METRICS,
    ChannelSnapshot,
    Measurements,
    Origin,
    Series,
    Status,
    Step,
    Unit,
    UnitId,
)
from soma.health._report import AuditReport
from soma.health._rollup import rollup
from soma.health._rows import measurements_from_rows, measurements_to_rows
from soma.health._severity import NEUTRAL
from soma.health._thresholds import Thresholds

if TYPE_CHECKING:
    from soma.health._record import HealthRecord

__all__ = [
    "AuditReport",
    "Certainty",
    "ChannelSnapshot",
    "Explanation",
    "FilterReport",
    "Finding",
    "HealthRecord",
    "METRICS",
    "Measurements",
    "NEUTRAL",
    "Origin",
    "Series",
    "Status",
    "Step",
    "Thresholds",
    "Unit",
    "UnitId",
    "Verdict",
    "explain",
    "flags",
    "judge",
    "lost",
    "measurements_from_rows",
    "measurements_to_rows",
    "rollup",
]

__getattr__ = _extras.late(__name__, {"HealthRecord": "_record"}, extra="all")

"""What a run's directory says of its health: what an audit measured, and the verdict on that."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from soma.errors import InvalidMeasurements, InvalidThreshold, NotRecorded
from soma.files import parse_json, read_json, read_lines
from soma.health._judge import judge
from soma.health._numbers import Measurements
from soma.health._numbers_json import measurements_from_rows
from soma.health._report import AuditReport
from soma.health._thresholds import Thresholds
from soma.tracking import RunRecord

_AUDIT = "diagnostics/audit.jsonl"  # rows of `measurements_to_rows`, a line each
_HEALTH = "diagnostics/health.json"  # `flags`, as `rollup` gives them, and `thresholds`

Flag = dict[str, Any]


class HealthRecord:
    """The health of one run, read from its directory, also while an audit still writes there."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._audit = record.dir / _AUDIT
        self._health = record.dir / _HEALTH
        self._read: tuple[int, Measurements | None] = (-1, None)  # at which size, and what
        self._judged: tuple[Measurements, Thresholds, AuditReport] | None = None

    def measurements(self) -> Measurements | None:
        """Return what an audit measured; None where none ran. It is read again when it has grown.

        Raises:
            InvalidMeasurements: a newer soma wrote it.
        """
        size = _size(self._audit)
        if size != self._read[0]:
            rows = map(_row, read_lines(self._audit)) if size else ()
            self._read = size, measurements_from_rows(rows) if size else None
        return self._read[1]

    def readable(self) -> Measurements | None:
        """Return what an audit measured; None also where a newer soma wrote it."""
        with suppress(InvalidMeasurements):
            return self.measurements()
        return None

    def measured(self) -> Measurements:
        """Return what an audit measured.

        Raises:
            NotRecorded: none ran.
        """
        found = self.measurements()
        if found is None:
            raise NotRecorded(
                f"the run `{self._record.name}` holds no audit; train inside "
                "`with g.gradient_audit():` within `with g.track_run(...):`."
            )
        return found

    def report(self, thresholds: Mapping[str, float] | Thresholds | None = None) -> AuditReport:
        """Return the verdict, by the thresholds of the audit where none are given.

        Raises:
            NotRecorded: no audit ran.
            InvalidThreshold: a threshold that no rule has, or a value that is none.
        """
        given = self._thresholds() if thresholds is None else Thresholds.of(thresholds)
        measured, last = self.measured(), self._judged
        if last is None or last[0] is not measured or last[1] != given:
            last = self._judged = measured, given, AuditReport(judge(measured, given))
        return last[2]

    def flags(self) -> list[Flag]:
        """Return the flags of each node, as the audit left them, else as they are judged now."""
        flags = self._record.flags()
        if flags is not None:
            return flags
        return [] if self.readable() is None else self.report().rollup()

    def unit_flags(self) -> list[Flag]:
        """Return one mapping for each flag of a module inside a node, by its id."""
        if self.readable() is None:
            return [
                {"node_id": id, "flag": flag.get("flag"), "why": flag.get("why")}
                for flag in self.flags()
                for id in [flag.get("node_id"), *_ids(flag.get("filters"))]
            ]
        return [
            {"node_id": one.unit, "flag": one.flag, "why": one.why}
            for one in self.report().findings
        ]

    def _thresholds(self) -> Thresholds:
        given = self._kept().get("thresholds")
        with suppress(InvalidThreshold):  # of another soma
            return Thresholds.of(given if isinstance(given, Mapping) else None)
        return Thresholds()

    def _kept(self) -> Mapping[str, Any]:
        try:
            found = read_json(self._health)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _ids(found: object) -> list[object]:
    return list(found) if isinstance(found, list) else []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _row(line: bytes) -> object:
    try:
        return parse_json(line)
    except ValueError:
        return None  # the reader counts it

"""What a run's directory says of its health: what an audit measured, and the verdict on that."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from soma.errors import InvalidMeasurements, InvalidThreshold, NotRecorded
from soma.files import parse_json, read_json, read_lines
from soma.health._judge import judge
from soma.health._measurements import Measurements
from soma.health._report import AuditReport
from soma.health._rows import measurements_from_rows
from soma.health._thresholds import Thresholds
from soma.tracking import RunRecord, numbered

_AUDIT = "audit.jsonl"  # rows of `measurements_to_rows`, a line each
_HEALTH = "health.json"  # `flags`, as `rollup` gives them, and `thresholds`

Flag = dict[str, Any]


class HealthRecord:
    """The health of one run, read from its directory, also while an audit still writes there.

    Args:
        record: the run.
        audit: which of its audits, the first is 1; None: the last that has written something.
    """

    def __init__(self, record: RunRecord, audit: int | None = None) -> None:
        self.run = record.name
        self._folder = record.dir / "diagnostics"
        self._chosen = audit
        self._read: tuple[tuple[int, int], Measurements | None] = ((0, -1), None)  # of what state
        self._judged: tuple[Measurements, Thresholds, AuditReport] | None = None

    def measurements(self) -> Measurements | None:
        """Return what an audit measured; None where none ran. It is read again when it has grown.

        Raises:
            NotRecorded: another one than the last was asked for, and the run has no such audit.
            InvalidMeasurements: a newer soma wrote it.
        """
        self._check_chosen()
        file = self._folder / numbered(_AUDIT, self._number)
        state = self._number, (size := _size(file))
        if state != self._read[0]:
            rows = map(_row, read_lines(file)) if size else ()
            self._read = state, measurements_from_rows(rows) if size else None
        return self._read[1]

    @property
    def audits(self) -> int:
        """How many audits the run has."""
        files = takewhile(Path.exists, (self._folder / numbered(_AUDIT, one) for one in count(1)))
        return sum(1 for _ in files)

    @property
    def _number(self) -> int:
        if self._chosen is not None:
            return self._chosen
        numbers = range(self.audits, 0, -1)
        return next((one for one in numbers if _size(self._folder / numbered(_AUDIT, one))), 1)

    def readable(self) -> Measurements | None:
        """Return what an audit measured; None also where a newer soma wrote it.

        Raises:
            NotRecorded: as in `measurements`.
        """
        with suppress(InvalidMeasurements):
            return self.measurements()
        return None

    def measured(self) -> Measurements:
        """Return what an audit measured.

        Raises:
            NotRecorded: none ran.
        """
        found = self.measurements()
        if found is None and self.audits:
            raise NotRecorded(
                f"audit {self._number} of the run `{self.run}` has written nothing yet; ask again "
                "later, if the run still goes on."
            )
        if found is None:
            raise NotRecorded(
                f"the run `{self.run}` holds no audit; train inside "
                "`with g.gradient_audit():` within `with g.track_run(...):`, or give "
                "`audit_modules` the `run`."
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
        flags = self._kept().get("flags")
        if isinstance(flags, list):
            return [flag for flag in flags if isinstance(flag, dict)]
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

    def _check_chosen(self) -> None:
        """Object to an audit that is not there, which else would look like one without faults."""
        audits = self.audits
        if self._chosen is not None and audits and not 0 < self._chosen <= audits:
            raise NotRecorded(
                f"the run `{self.run}` has no audit {self._chosen}; it has {audits}, from 1 on."
            )

    def _thresholds(self) -> Thresholds:
        given = self._kept().get("thresholds")
        with suppress(InvalidThreshold):  # of another soma
            return Thresholds.of(given if isinstance(given, Mapping) else None)
        return Thresholds()

    def _kept(self) -> Mapping[str, Any]:
        try:
            found = read_json(self._folder / numbered(_HEALTH, self._number))
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

"""Keeps what an audit measures in a run's directory, while it goes on, and the flags at the end.

A crash loses the last second at most; what is in the file can be judged again without torch. A
file that grows large is written anew with fewer steps, see `_thinning.py`, and then the steps of
the last group wait until it is full.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from time import monotonic

from soma.audit._thinning import Strides, kept_steps, pooled_snapshots, rounded
from soma.health import (
    AuditReport,
    Measurements,
    Series,
    Thresholds,
    Unit,
    measurements_to_rows,
)
from soma.tracking import RowFile, Run, numbered

_SECONDS = 1.0  # between two writes
_MOST = 6_000_000  # bytes of channels, and as many of all else that comes step by step
_WIDER = 4  # times as many steps go together then: to write a file anew takes a second
_FILE, _HEALTH = "audit.jsonl", "health.json"


class AuditRecord:
    """The record of one audit in one run."""

    def __init__(
        self,
        run: Run,
        measurements: Measurements,
        thresholds: Thresholds,
        bring: Callable[[], None] = lambda: None,
    ) -> None:
        self._run = run
        self._bring = bring  # what was measured in other processes
        self._measurements = measurements
        self._lines = {
            one.name: value
            for one in fields(thresholds)
            if (value := getattr(thresholds, one.name)) != one.default
        }
        self.most = _MOST
        self._file: RowFile | None = None
        self._strides = Strides()
        self._writes = 0
        self._due = monotonic() + _SECONDS
        self._forget()
        run.attempt(self._open)

    def _forget(self) -> None:
        """Forget what is in the file, as if it were empty."""
        self._units: dict[str, Unit] = {}
        self._written: dict[object, int] = {}  # how much of each list is in the file
        self._steps = 0
        self._bytes = {"channels": 0, "steps": 0}

    def stepped(self) -> None:
        """Write what has come, once in a while."""
        if monotonic() >= self._due:
            self._bring()
            # The last step may go on, with another optimizer.
            self._run.attempt(self._write_all_but_last)
            self._due = monotonic() + _SECONDS

    def end(self) -> None:
        """Write the rest."""
        self._run.attempt(self._finish)

    def write_health(self, report: AuditReport) -> None:
        """Write the flags of each node, and the limits that are not the usual ones."""
        found = {"flags": report.rollup(), "thresholds": self._lines}
        self._run.attempt(lambda: self._write_whole(found))

    def _open(self) -> None:
        self._file = self._run.diagnostics_file(_FILE)
        if self._lines:  # a run that does not come to its end is judged by them, too
            self._write_whole({"thresholds": self._lines})

    def _write_whole(self, found: Mapping[str, object]) -> None:
        if self._file is not None:
            self._run.write_diagnostics(numbered(_HEALTH, self._file.number), found)

    def _write_all_but_last(self) -> None:
        self._writes += 1
        end = self._strides.whole(len(self._measurements.steps) - 1, last=False)
        self._write(end, seldom=self._writes.bit_count() == 1)

    def _finish(self) -> None:
        self._write(len(self._measurements.steps), seldom=True)
        if self._file is not None:
            self._file.close()

    def _write(self, end: int, *, seldom: bool) -> None:
        if self._file is None or end < self._steps:
            return
        for row in measurements_to_rows(self._news(end, seldom=seldom)):
            self._count(row, self._file.append(row))
        while self._widen():
            self._forget()
            rows = [*measurements_to_rows(self._news(end, seldom=True))]
            for row, size in zip(rows, self._file.replace(rows), strict=True):
                self._count(row, size)

    def _count(self, row: Mapping[str, object], size: int) -> None:
        kind = "channels" if row["kind"] == "channels" else "steps"
        if "step" in row:
            self._bytes[kind] += size

    def _widen(self) -> bool:
        """Thin the record out further if its file is large; return whether it was."""
        steps, snapshots = self._strides.steps, self._strides.snapshots
        if self._bytes["channels"] > self.most:
            snapshots *= _WIDER
        if self._bytes["steps"] > self.most:
            steps *= _WIDER
        wider = Strides(steps, max(steps, snapshots))
        if wider == self._strides or wider.snapshots > _WIDER * len(self._measurements.steps):
            return False
        self._strides = wider
        return True

    def _news(self, end: int, *, seldom: bool) -> Measurements:
        """Return what is new in the first `end` steps.

        Args:
            seldom: what replaces what was written before, and is large, too.
        """
        measured = self._measurements
        last = measured.steps[end - 1].step if end else -1
        kept = kept_steps(measured.steps[self._steps : end], self._strides)
        kept |= {
            one.step: one for one in measured.steps[end - 1 : end] if end == len(measured.steps)
        }
        news = Measurements(
            units={id: unit for id, unit in measured.units.items() if self._units.get(id) != unit},
            steps=list(kept.values()),
            correlation={
                unit: [rounded(row) for row in rows]
                for unit, rows in (measured.correlation if seldom else {}).items()
            },
            correlation_channels=measured.correlation_channels if seldom else {},
            every=measured.every,
            notes=[*measured.notes, *self._strides.notes()],
        )
        self._units |= news.units
        self._steps = end
        for unit, by_name in measured.series.items():
            news.series[unit] = {
                name: self._tail((unit, name), series, last, kept)
                for name, series in by_name.items()
            }
        for unit, by_pair in measured.similarity.items():
            news.similarity[unit] = {
                pair: self._tail((unit, pair), series, last, kept)
                for pair, series in by_pair.items()
            }
        for unit, snapshots in measured.channels.items():
            begin, at = self._written.get(unit, 0), len(snapshots)
            while at > begin and snapshots[at - 1].step > last:
                at -= 1
            pooled = pooled_snapshots(snapshots[begin:at], self._strides, news.steps)
            news.channels[unit] = list(pooled)
            self._written[unit] = at
        begin = self._written.get("origins", 0)
        news.origins = measured.origins[begin:]
        self._written["origins"] = len(measured.origins)
        return news

    def _tail(self, key: object, series: Series, last: int, kept: Collection[int]) -> Series:
        begin, at = self._written.get(key, 0), len(series.steps)
        while at > begin and series.steps[at - 1] > last:
            at -= 1
        self._written[key] = at
        mine = [one for one in range(begin, at) if series.steps[one] in kept]
        return Series(
            steps=[series.steps[one] for one in mine],
            values=[series.values[one] for one in mine],
        )

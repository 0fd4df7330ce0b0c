"""Keeps what an audit measures in a run's directory, while it goes on, and the flags at the end.

A crash loses the last second at most; what is in the file can be judged again without torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from time import monotonic

from soma.health import (
    AuditReport,
    ChannelSnapshot,
    Measurements,
    Series,
    Thresholds,
    Unit,
    measurements_to_rows,
)
from soma.tracking import RowFile, Run, numbered

_SECONDS = 1.0  # between two writes
_MANY = 500_000  # channels, about 12 MB; for each doubling, half as many snapshots are kept
_FILE, _HEALTH = "audit.jsonl", "health.json"


class AuditRecord:
    """The record of one audit in one run."""

    def __init__(self, run: Run, measurements: Measurements, thresholds: Thresholds) -> None:
        self._run = run
        self._measurements = measurements
        self._lines = {
            one.name: value
            for one in fields(thresholds)
            if (value := getattr(thresholds, one.name)) != one.default
        }
        self._file: RowFile | None = None
        self._units: dict[str, Unit] = {}
        self._written: dict[object, int] = {}  # how much of each list is in the file
        self._steps = 0
        self._writes = 0
        self._kept = 0  # channels in all snapshots that are in the file
        self._due = monotonic() + _SECONDS
        run.attempt(self._open)

    def stepped(self) -> None:
        """Write what has come, once in a while."""
        if monotonic() >= self._due:
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
        self._write(len(self._measurements.steps) - 1, seldom=self._writes.bit_count() == 1)

    def _finish(self) -> None:
        self._write(len(self._measurements.steps), seldom=True)
        if self._file is not None:
            self._file.close()

    def _write(self, end: int, *, seldom: bool) -> None:
        if self._file is None or end < self._steps:
            return
        for row in measurements_to_rows(self._news(end, seldom=seldom)):
            self._file.append(row)

    def _news(self, end: int, *, seldom: bool) -> Measurements:
        """Return what is new in the first `end` steps.

        Args:
            seldom: what replaces what was written before, and is large, too.
        """
        measured = self._measurements
        last = measured.steps[end - 1].step if end else -1
        news = Measurements(
            units={id: unit for id, unit in measured.units.items() if self._units.get(id) != unit},
            steps=measured.steps[self._steps : end],
            correlation=measured.correlation if seldom else {},
            correlation_channels=measured.correlation_channels if seldom else {},
            every=measured.every,
            notes=list(measured.notes),
        )
        self._units |= news.units
        self._steps = end
        for unit, by_name in measured.series.items():
            news.series[unit] = {
                name: self._tail((unit, name), series, last) for name, series in by_name.items()
            }
        for unit, by_pair in measured.similarity.items():
            news.similarity[unit] = {
                pair: self._tail((unit, pair), series, last) for pair, series in by_pair.items()
            }
        for unit, snapshots in measured.channels.items():
            begin, at = self._written.get(unit, 0), len(snapshots)
            while at > begin and snapshots[at - 1].step > last:
                at -= 1
            stride = 1 << (self._kept // _MANY).bit_length()
            kept = [
                one for place, one in enumerate(snapshots[begin:at], begin) if not place % stride
            ]
            self._kept += sum(len(one.largest) for one in kept)
            news.channels[unit] = [_short(one) for one in kept]
            self._written[unit] = at
        begin = self._written.get("origins", 0)
        news.origins = measured.origins[begin:]
        self._written["origins"] = len(measured.origins)
        return news

    def _tail(self, key: object, series: Series, last: int) -> Series:
        begin, at = self._written.get(key, 0), len(series.steps)
        while at > begin and series.steps[at - 1] > last:
            at -= 1
        self._written[key] = at
        return Series(steps=series.steps[begin:at], values=series.values[begin:at])


def _short(snapshot: ChannelSnapshot) -> ChannelSnapshot:
    """Return a snapshot with five digits of each number: no rule looks closer."""
    return replace(
        snapshot,
        largest=_rounded(snapshot.largest),
        deviation=_rounded(snapshot.deviation),
        gradient=_rounded(snapshot.gradient),
    )


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]

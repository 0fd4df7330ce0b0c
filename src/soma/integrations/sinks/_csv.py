"""A run's points as a CSV file."""

import csv
import io
from collections.abc import Sequence
from math import isnan
from os import PathLike, fspath
from pathlib import Path

from soma.files import below, make_folder
from soma.integrations.sinks._run_file import RunFile
from soma.tracking import Manifest, Point, Sink

COLUMNS = ("run", "name", "step", "value", "time")


class CsvSink(Sink):
    """Writes each run to `<folder>/<run id>.csv`: `run`, `name`, `step`, `value` and `time`.

    The value is as exact as it was logged, NaN is `NaN` and infinity `inf`; the time is in seconds
    since the run began. An earlier file of the run is replaced.
    """

    def __init__(self, folder: str | PathLike[str] = "csv") -> None:
        self._folder = Path(fspath(folder)).absolute()

    def start(self, run: Manifest) -> None:
        """Begin the file of a run with the names of the columns."""
        make_folder(str(self._folder))
        self._run = run.id
        path = below(self._folder, f"{run.id}.csv")
        self._file = RunFile(path)
        self.where = str(path)
        self._append([COLUMNS])

    def points(self, points: Sequence[Point]) -> None:
        """Add a line for each point."""
        self._append(
            [(self._run, name, step, _text(value), time) for name, step, value, time in points]
        )

    def _append(self, rows: Sequence[Sequence[object]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.add(text.getvalue().encode())


def _text(value: float) -> str:
    return "NaN" if isnan(value) else repr(value)  # Polars knows no `nan`

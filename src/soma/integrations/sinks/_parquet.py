"""A run's points as a Parquet file."""

from array import array
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from soma._extras import require
from soma.files import below, make_folder, write_atomically
from soma.integrations.sinks._csv import COLUMNS
from soma.tracking import Manifest, Point, Sink, Standing


class ParquetSink(Sink):
    """Writes each run to `<folder>/<run id>.parquet` at its end, in the columns of a `CsvSink`.

    The points wait in memory till then, 24 bytes each. A run whose process was killed has no file;
    `soma export RUN --to parquet` writes it.

    Raises:
        MissingExtra: pyarrow is not installed.
    """

    def __init__(self, folder: str | PathLike[str] = "parquet") -> None:
        self._arrow = require("pyarrow", extra="frames")
        self._parquet = require("pyarrow.parquet", extra="frames")
        self._folder = Path(fspath(folder)).absolute()

    def start(self, run: Manifest) -> None:
        """Begin a run without points, and make the folder."""
        make_folder(str(self._folder))
        self._run = run.id
        self._path = below(self._folder, f"{run.id}.parquet")
        self.where = str(self._path)
        self._codes: dict[str, int] = {}  # each name once; points hold its number
        self._names = array("i")
        self._steps = array("q")
        self._values = array("d")
        self._times = array("d")

    def points(self, points: Sequence[Point]) -> None:
        """Keep points for the end."""
        for name, step, value, time in points:
            self._names.append(self._codes.setdefault(name, len(self._codes)))
            self._steps.append(step)
            self._values.append(value)
            self._times.append(time)

    def close(self, standing: Standing) -> None:
        """Write the whole file."""
        arrow = self._arrow
        text = arrow.string()
        names = arrow.DictionaryArray.from_arrays(
            arrow.array(self._names, arrow.int32()), arrow.array([*self._codes], text)
        )
        runs = arrow.DictionaryArray.from_arrays(
            arrow.array([0] * len(names), arrow.int32()), arrow.array([self._run], text)
        )
        columns = [
            runs,
            names,
            arrow.array(self._steps, arrow.int64()),
            arrow.array(self._values, arrow.float64()),
            arrow.array(self._times, arrow.float64()),
        ]
        buffer = arrow.BufferOutputStream()
        self._parquet.write_table(arrow.Table.from_arrays(columns, names=COLUMNS), buffer)
        write_atomically(str(self._path), [memoryview(buffer.getvalue())])

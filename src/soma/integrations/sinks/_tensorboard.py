"""Runs in TensorBoard, written by its own record writer: without torch or TensorFlow."""

import io
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from soma._extras import require
from soma.draw import printable
from soma.files import below, make_folder
from soma.integrations.sinks._names import findings_text, flat
from soma.integrations.sinks._run_file import RunFile
from soma.tracking import Manifest, Point, Sink, Standing

_VERSION = "brain.Event:2"
_LONGEST = 100_000  # characters of a text


class TensorBoardSink(Sink):
    """Writes each run into `<folder>/<run id>`: `tensorboard --logdir <folder>`.

    Points are scalars, which TensorBoard keeps as 32-bit floats; params are hyperparameters; what
    the run was, and what an audit flagged, are texts. An earlier file of the run is replaced.

    Raises:
        MissingExtra: TensorBoard is not installed.
    """

    def __init__(self, folder: str | PathLike[str] = "tensorboard") -> None:
        writer = require("tensorboard.summary.writer.record_writer", extra="tensorboard")
        proto = "tensorboard.compat.proto"
        self._record_writer = writer.RecordWriter
        self._event = require(f"{proto}.event_pb2", extra="tensorboard").Event
        self._summary = require(f"{proto}.summary_pb2", extra="tensorboard").Summary
        self._folder = Path(fspath(folder)).absolute()

    def start(self, run: Manifest) -> None:
        """Begin the file of a run with its name, kind, tags and params."""
        folder = below(self._folder, run.id)
        make_folder(str(folder))
        self.where = str(folder)
        self._file = RunFile(folder / f"events.out.tfevents.{int(run.created_at)}.{run.id}")
        self._began = run.created_at
        first = self._event(wall_time=run.created_at, file_version=_VERSION)
        params = dict(flat(run.params))
        rows = {"name": run.name, "kind": run.kind, "tags": ", ".join(run.tags), **params}
        values = [self._text("run", _table(rows)), *self._hyperparameters(run, params)]
        self._append([first, self._of(values, run.created_at)])

    def points(self, points: Sequence[Point]) -> None:
        """Add a scalar for each point."""
        self._append(map(self._scalar, points))

    def findings(self, flags: Sequence[Mapping[str, Any]]) -> None:
        """Add a text of what was flagged."""
        text = "\n\n".join(findings_text(flags, _LONGEST).splitlines())
        self._append([self._of([self._text("findings", text)], self._began)])

    def close(self, standing: Standing) -> None:
        """Write how the run ended, which the table of hyperparameters shows."""
        if standing.state == "running":
            return
        hparams = "tensorboard.plugins.hparams"
        metadata = require(f"{hparams}.metadata", extra="tensorboard")
        status = require(f"{hparams}.api_pb2", extra="tensorboard").Status
        data = require(f"{hparams}.plugin_data_pb2", extra="tensorboard")
        ended = standing.ended_at or self._began
        done = standing.state == "completed"
        info = data.SessionEndInfo(
            status=status.Value("STATUS_SUCCESS" if done else "STATUS_FAILURE"),
            end_time_secs=ended,
        )
        value = self._summary.Value(
            tag=metadata.SESSION_END_INFO_TAG,
            metadata=metadata.create_summary_metadata(
                data.HParamsPluginData(session_end_info=info)
            ),
            tensor=metadata.NULL_TENSOR,
        )
        text = self._text("state", f"{standing.state} {printable(standing.error or '')}".strip())
        self._append([self._of([value, text], ended)])
        self._file.end()

    def _scalar(self, point: Point) -> Any:
        value = self._summary.Value(tag=point.name, simple_value=point.value)
        return self._of([value], self._began + point.time, point.step)

    def _hyperparameters(self, run: Manifest, params: Mapping[str, Any]) -> Iterable[Any]:
        hparams = require("tensorboard.plugins.hparams.summary_v2", extra="tensorboard")
        known = {name: str(one) if one is None else one for name, one in params.items()}
        # Without params there is nothing to compare; the row would be empty.
        if known:
            yield from hparams.hparams_pb(
                known, trial_id=run.id, start_time_secs=run.created_at
            ).value

    def _text(self, tag: str, text: str) -> Any:
        plugin = require("tensorboard.plugins.text.metadata", extra="tensorboard")
        tensors = require("tensorboard.compat.proto.tensor_pb2", extra="tensorboard")
        types = require("tensorboard.compat.proto.types_pb2", extra="tensorboard")
        return self._summary.Value(
            tag=f"soma/{tag}",
            metadata=plugin.create_summary_metadata("", ""),
            tensor=tensors.TensorProto(
                dtype=types.DT_STRING, string_val=[text[:_LONGEST].encode()]
            ),
        )

    def _of(self, values: Sequence[Any], time: float, step: int = 0) -> Any:
        return self._event(wall_time=time, step=step, summary=self._summary(value=values))

    def _append(self, events: Iterable[Any]) -> None:
        records = io.BytesIO()
        writer = self._record_writer(records)
        for event in events:
            writer.write(event.SerializeToString())
        self._file.add(records.getvalue())


def _table(rows: Mapping[str, object]) -> str:
    cells = [
        [printable(str(cell)).replace("|", "\\|") for cell in row if cell != ""]
        for row in rows.items()
    ]
    return "\n".join(["| | |", "|-|-|", *(f"| {' | '.join(row)} |" for row in cells)])

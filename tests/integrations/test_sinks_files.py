"""Runs as CSV, as Parquet and in TensorBoard, read back by the tools that people use."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import soma
from soma.errors import NotRecorded, SinkWarning
from soma.integrations.sinks import CsvSink, ParquetSink, TensorBoardSink, export_run
from soma.tracking import Point, RunRecord, Sink
from tests.integrations.sinks_read import by_name, hard_run, points
from tests.tracking.filters import script
from tests.viz.audits_made import audited, chain, write_flags

KILLED = """
import os, signal, sys
import soma
from soma.integrations.sinks import CsvSink
with soma.track_run("killed", root=sys.argv[1], sinks=[CsvSink(sys.argv[2])]) as run:
    for step in range(500):
        run.log("loss", step)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def read(path: str, how: str) -> list[Point]:
    """Return the points of a file, as a library reads it."""
    frame = getattr({"pandas": pd, "polars": pl}[how], f"read_{Path(path).suffix[1:]}")(path)
    columns = [frame[name].to_list() for name in ("name", "step", "value", "time")]
    return [Point(*row) for row in zip(*columns, strict=True)]


def scalars(folder: str) -> dict[str, list[tuple[float, int, float]]]:
    """Return time, step and value of each scalar, as TensorBoard reads them."""
    accumulator = loaded(folder)
    return {
        tag: [(one.wall_time, one.step, one.value) for one in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def loaded(folder: str) -> Any:
    """Return what TensorBoard knows of a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


@pytest.mark.parametrize("how", ["pandas", "polars"])
@pytest.mark.parametrize("make", [CsvSink, ParquetSink])
def test_a_table_holds_what_is_recorded(make: Any, how: str, tmp_path: Path) -> None:
    """Name, step, value and time are exact, whatever was logged."""
    sink = make(tmp_path / "out")
    folder = hard_run(tmp_path)

    assert export_run(folder, sink) == len(points(folder))
    assert Path(sink.where) == tmp_path / "out" / f"{folder.name}{Path(sink.where).suffix}"
    found = read(sink.where, how)
    assert by_name(found) == by_name(points(folder))
    assert [one.time for one in found] == sorted(one.time for one in points(folder))


@pytest.mark.parametrize("make", [CsvSink, ParquetSink, TensorBoardSink])
def test_exported_twice_is_exported_once(make: Any, tmp_path: Path) -> None:
    """The second export replaces the first, and the one that was made while the run went on."""
    sink = make(tmp_path / "out")
    folder = hard_run(tmp_path, sinks=[sink])
    live = [path.name for path in (tmp_path / "out").rglob("*")]
    first = Path(sink.where)
    size = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*"))
    export_run(folder, sink)
    export_run(folder, sink)

    assert Path(sink.where) == first
    assert [path.name for path in (tmp_path / "out").rglob("*")] == live
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*")) == size


def test_tensorboard_holds_what_is_recorded(tmp_path: Path) -> None:
    """Each scalar has its name, its step, its time, and its value as a 32-bit float."""
    sink = TensorBoardSink(tmp_path / "out")
    folder = hard_run(tmp_path, sinks=[sink])
    began = RunRecord(folder).manifest.created_at
    wanted: dict[str, list[tuple[float, int, str]]] = {}
    for point in points(folder):
        value = struct.unpack("<f", struct.pack("<f", point.value))[0]
        wanted.setdefault(point.name, []).append((began + point.time, point.step, repr(value)))
    found = {
        tag: [(time, step, repr(value)) for time, step, value in series]
        for tag, series in scalars(sink.where).items()
    }

    assert found == wanted


def test_tensorboard_knows_params_and_end(tmp_path: Path) -> None:
    """Params are hyperparameters, and the session has ended as the run has."""
    from tensorboard.plugins.hparams import metadata

    sink = TensorBoardSink(tmp_path / "out")
    with (
        pytest.raises(KeyError),
        soma.track_run(
            "fails", params={"lr": 0.1, "deep": {"on": True}}, root=tmp_path, sinks=[sink]
        ),
    ):
        raise KeyError("mine")
    accumulator = loaded(sink.where)
    content = {
        tag: metadata.parse_session_end_info_plugin_data(data)
        if tag == metadata.SESSION_END_INFO_TAG
        else metadata.parse_session_start_info_plugin_data(data)
        for tag, data in accumulator.PluginTagToContent("hparams").items()
    }
    start = content[metadata.SESSION_START_INFO_TAG]

    assert start.hparams["lr"].number_value == 0.1
    assert start.hparams["deep.on"].bool_value is True
    assert content[metadata.SESSION_END_INFO_TAG].status == 2  # failure
    (state,) = accumulator.Tensors("soma/state")
    assert state.tensor_proto.string_val[0] == b"failed KeyError: 'mine'"


@pytest.mark.parametrize("ended", [True, False])
def test_tensorboard_knows_what_an_audit_flagged(ended: bool, tmp_path: Path) -> None:
    """The findings are a text, also those of an audit that was cut off by a crash."""
    measured = chain(4, shrinks=1e-4)
    view = audited(tmp_path, measured)
    if ended:
        write_flags(view.dir, measured)
    sink = TensorBoardSink(tmp_path / "out")
    export_run(view.dir, sink)
    (text,) = loaded(sink.where).Tensors("soma/findings")

    assert text.tensor_proto.string_val[0].startswith(b"net: VANISHING")


@pytest.mark.parametrize("make", [CsvSink, ParquetSink, TensorBoardSink])
def test_a_file_in_place_of_the_folder(make: Any, tmp_path: Path) -> None:
    """The sink is told of and left alone; the run completes."""
    (tmp_path / "out").write_text("in the way")
    with (
        pytest.warns(SinkWarning, match=make.__name__),
        soma.track_run("test", root=tmp_path, sinks=[make(tmp_path / "out")]) as run,
    ):
        run.log("loss", 0.5)

    assert RunRecord(run.dir).state == "completed"
    assert (tmp_path / "out").read_text() == "in the way"


@pytest.mark.parametrize("make", [CsvSink, ParquetSink, TensorBoardSink])
def test_a_manifest_leads_nowhere_else(make: Any, tmp_path: Path) -> None:
    """The id in a file that came from elsewhere makes no path."""
    with soma.track_run("test", root=tmp_path) as run:
        run.log("loss", 0.5)
    manifest = run.dir / "manifest.json"
    told = json.loads(manifest.read_text()) | {"id": "../../../outside", "name": "../x"}
    manifest.write_text(json.dumps(told))
    sink = make(tmp_path / "out")
    export_run(run.dir, sink)

    assert run.dir.name in sink.where
    assert not [*tmp_path.rglob("*outside*")]


@pytest.mark.parametrize("make", [CsvSink, ParquetSink, TensorBoardSink])
def test_one_sink_takes_one_run_after_the_other(make: Any, tmp_path: Path) -> None:
    """Each has a place of its own."""
    sink, places = make(tmp_path / "out"), []
    for value in (0.5, 0.25):
        with soma.track_run("again", root=tmp_path, sinks=[sink]) as run:
            run.log("loss", value)
        places.append(sink.where)
        assert run.id in sink.where

    assert len({*places}) == len([*(tmp_path / "out").iterdir()]) == 2


def test_a_run_that_goes_on_is_exported_as_it_is(tmp_path: Path) -> None:
    """And once more when it has ended."""
    sink = CsvSink(tmp_path / "out")
    with soma.track_run("long", root=tmp_path) as run:
        run.log("loss", 0.5)
        assert export_run(run.dir, sink) == 1
        run.log("loss", 0.25)

    assert export_run(run.dir, sink) == 2
    assert read(sink.where, "polars") == points(run.dir)


def test_an_unreadable_run_is_refused(tmp_path: Path) -> None:
    """Nothing is written of a run that nobody knows the end of."""
    folder = hard_run(tmp_path)
    (folder / "status.json").write_text("{")
    with pytest.raises(NotRecorded, match=r"`status\.json`.*`soma check` lists"):
        export_run(folder, CsvSink(tmp_path / "out"))

    assert not (tmp_path / "out").exists()


@pytest.mark.process
def test_a_killed_run_is_exported_whole(tmp_path: Path) -> None:
    """What the sink of the killed process had not written yet is there after an export."""
    script(KILLED, tmp_path, tmp_path / "out", check=False)
    (folder,) = (tmp_path / "runs").iterdir()
    sink = CsvSink(tmp_path / "out")

    assert RunRecord(folder).state == "crashed"
    assert export_run(folder, sink) == 500
    assert read(sink.where, "polars") == points(folder)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_stops_no_run(tmp_path: Path) -> None:
    """A CSV file that takes no more is told of with the system's reason."""

    class Full(CsvSink):
        def start(self, run: Any) -> None:
            super().start(run)
            Path(self.where).unlink()
            Path(self.where).symlink_to("/dev/full")

    sink: Sink = Full(tmp_path / "out")
    with (
        pytest.warns(SinkWarning, match="No space left on device"),
        soma.track_run("test", root=tmp_path, sinks=[sink]) as run,
    ):
        run.log("loss", np.float32(0.5))

    assert RunRecord(run.dir).state == "completed"
    assert points(run.dir)[0].value == 0.5


@pytest.mark.parametrize("make", [CsvSink, TensorBoardSink])
def test_an_export_in_the_middle_of_another(make: Any, tmp_path: Path) -> None:
    """Two exports of a run at once leave what one of them does: nothing stands twice."""
    folder = hard_run(tmp_path / "runs")

    class Interrupted(make):
        def points(self, points):
            super().points(points[:5])
            export_run(folder, make(tmp_path / "both"))
            super().points(points[5:])

    export_run(folder, make(tmp_path / "one"))
    export_run(folder, Interrupted(tmp_path / "both"))

    (one,) = (file for file in (tmp_path / "one").rglob("*") if file.is_file())
    (both,) = (file for file in (tmp_path / "both").rglob("*") if file.is_file())
    assert both.read_bytes() == one.read_bytes()

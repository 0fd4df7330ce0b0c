"""Reading run directories that are damaged, foreign, newer, or of processes that are gone."""

import json
import os
import socket
import time
from math import inf
from pathlib import Path

import pytest

from soma import Graph
from soma.errors import UnknownRun
from soma.tracking import Run, RunRecord, check_run, run_records, track_run
from tests.tracking.filters import Plus

DAMAGE = [
    *(b"\x00" * 4096, b"\xff\xfe\xfd", b"[]", b"null", b"1", b'"a"', b"{}", b"{", b"}{", b"NaN"),
    *(b'{"event":1}', b'{"event":null,"name":null}', b"[" * 50_000 + b"]" * 50_000, b"1" * 9000),
    b'{"name":"a","step":0,"value":"nan","time":0}',
    b'{"name":"a","step":0,"value":NaN,"time":0}',
    b'{"name":"a","step":0,"value":1e999,"time":0}',
    b'{"name":"a","step":"0","value":1,"time":0}',
    b'{"name":"a","step":9223372036854775808,"value":1,"time":0}',
    b'{"name":["a"],"step":0,"value":1,"time":0}',
    b'{"event":["node"],"node":"x"}',
    b'{"event":"epoch","loss":' + b"9" * 400 + b"}",
    b'{"name":"a","event":5,"step":0,"value":null,"time":0}' + b" " * (1 << 20),
]
EMPTY_NODES = [
    b'{"event":"node"}',
    b'{"event":"node","node":3,"phase":[],"start":"x","seconds":{}}',
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of a whole run with three points and three turns of a node."""
    g = Graph.somatize(Plus(), cache=None)
    with g.track_run("test", root=tmp_path) as run:
        for step in range(3):
            g.forward(step)
            run.log("a", step)
    return run.dir


def read(folder: Path) -> tuple[list[float], int]:
    """Return the values of the metric, and how many turns there were."""
    record = RunRecord(folder)
    return [point["value"] for point in record.metric_series("a")], len(record.timings())


@pytest.mark.parametrize("name", ["metrics.jsonl", "events.jsonl"])
@pytest.mark.parametrize("line", [*DAMAGE, *EMPTY_NODES], ids=range(len(DAMAGE) + 2))
def test_a_damaged_line_costs_itself_only(folder: Path, name: str, line: bytes) -> None:
    """In the middle of a file; all other lines are read."""
    first, *others = (folder / name).read_bytes().splitlines(keepends=True)
    (folder / name).write_bytes(b"".join([first, line, b"\n", *others]))

    assert read(folder) == ([0.0, 1.0, 2.0], 3)
    assert RunRecord(folder).state == "completed"


@pytest.mark.parametrize("name", ["metrics.jsonl", "events.jsonl"])
def test_a_torn_last_line_is_dropped(folder: Path, name: str) -> None:
    """At any cut; the lines before it are kept."""
    data = (folder / name).read_bytes()
    whole = data[:-1].rfind(b"\n") + 1
    for end in range(whole, len(data)):
        (folder / name).write_bytes(data[:end])
        points, turns = read(folder)
        assert (len(points), turns) == ((2, 3) if name.startswith("m") else (3, 2))


WHOLE = ["manifest.json", "status.json", "graph.json", "modules.json", "diagnostics/compile.json"]
BROKEN = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"{}",
    b'{"format":1}',
    b'{"format":"1"}',
    b"\xff",
    b"[" * 9999,
]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("data", [None, *BROKEN], ids=range(len(BROKEN) + 1))
def test_a_broken_file_is_never_an_exception(folder: Path, name: str, data: bytes | None) -> None:
    """Without manifest or status a run is `unreadable`; without the others it lacks a part."""
    (folder / name).unlink(missing_ok=True)
    if data is not None:
        (folder / name).write_bytes(data)
    (record,) = run_records(folder.parents[1])
    record.graph(), record.modules(), record.diagnostics(), record.cache_activity()

    assert read(folder)[0] == [0.0, 1.0, 2.0]
    if name in WHOLE[:2]:
        assert record.state == "unreadable"
        assert name in record.error
    else:
        assert record.state == "completed"
    assert check_run(folder) != [] or data is None


@pytest.mark.parametrize("name", WHOLE[:2])
def test_a_newer_format_is_refused_with_the_reason(folder: Path, name: str) -> None:
    """What a later soma wrote is not guessed at."""
    data = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(data | {"format": 2}))
    record = RunRecord(folder)

    assert record.state == "unreadable"
    assert "format 2" in record.error


@pytest.mark.parametrize("name", WHOLE[:3])
def test_unknown_fields_are_no_trouble(folder: Path, name: str) -> None:
    """A file with more in it is read as ever."""
    data = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(data | {"new": [1]}))
    record = RunRecord(folder)

    assert (record.state, record.name) == ("completed", "test")
    assert [node.id for node in record.graph().nodes] == ["plus"]


def test_one_broken_run_spoils_no_list(folder: Path) -> None:
    """It stands among the others, as do folders of somebody else; files do not."""
    root = folder.parents[1]
    broken = track_run("broken", root=root)
    broken.finish()
    (broken.dir / "manifest.json").write_bytes(b"\x00")
    (root / "runs" / "foreign").mkdir()
    (root / "runs" / "foreign" / "file").touch()
    (root / "runs" / "file").touch()
    (root / "runs" / "link").symlink_to("x" * 300)
    states = {record.id: record.state for record in run_records(root)}

    assert states == {folder.name: "completed", broken.id: "unreadable", "foreign": "unreadable"}


def test_a_run_that_is_being_made_is_not_listed(tmp_path: Path) -> None:
    """A directory in its first moment is no broken run."""
    (tmp_path / "runs" / "new").mkdir(parents=True)
    (tmp_path / "runs" / "new" / "status.json").touch()

    assert run_records(tmp_path) == []


def test_where_no_runs_are_there_are_none(tmp_path: Path) -> None:
    """No root is an empty list; a run that is asked for by its path is an error."""
    assert run_records(tmp_path / "missing") == []
    with pytest.raises(UnknownRun, match="no run directory at"):
        RunRecord(tmp_path / "missing")


def running(run: Run, **changes: object) -> RunRecord:
    """Return the record of a run that says it goes on, with a changed status."""
    path = run.dir / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "running"} | changes))
    return RunRecord(run.dir)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run that goes on."""
    with track_run("test", root=tmp_path) as run:
        yield run


GONE = {"pid": 2**22 + 1}  # above what Linux numbers
REUSED = {"process_started": "1"}  # the number is taken, by a process that began at another time
ELSEWHERE = {"host": "elsewhere.example"}
OTHER_CONTAINER = {"space": "another boot pid:[1]", **GONE}


@pytest.mark.parametrize(
    ("changes", "age", "state"),
    [
        ({}, 0, "running"),
        ({}, 9999, "running"),
        (GONE, 0, "crashed"),
        (REUSED, 0, "crashed"),
        ({"pid": 0}, 0, "crashed"),
        ({"pid": -1}, 0, "crashed"),
        (ELSEWHERE, 0, "running"),
        (ELSEWHERE, 60, "running"),
        (ELSEWHERE, 200, "crashed"),
        (ELSEWHERE, -9999, "running"),
        (OTHER_CONTAINER, 0, "running"),
        (OTHER_CONTAINER, 200, "crashed"),
        ({"started_at": 978307200.0}, 0, "running"),
        ({"state": "paused"}, 0, "unreadable"),
        ({"pid": "1"}, 0, "unreadable"),
    ],
)
def test_whether_a_run_goes_on(run: Run, changes: dict[str, object], age: int, state: str) -> None:
    """Here its process tells, elsewhere the time since its file was touched; no clock in it."""
    record = running(run, **changes)
    touched = time.time() - age
    os.utime(run.dir / "status.json", (touched, touched))

    assert record.state == state
    assert (record.error is None) == (state == "running")


def test_a_status_names_its_process(run: Run) -> None:
    """Host, process and when it began."""
    status = json.loads((run.dir / "status.json").read_text())

    assert (status["pid"], status["host"]) == (os.getpid(), socket.gethostname())
    assert status["state"] == "running"
    assert status["process_started"] is not None


def test_points_are_read_as_they_come(run: Run) -> None:
    """One record sees what is logged after it was made."""
    record = RunRecord(run.dir)
    lengths = [len(record.metric_series("a"))]
    for _ in range(2):
        run.log("a", inf)
        lengths.append(len(record.metric_series("a")))

    assert lengths == [0, 1, 2]
    assert {*record.metric_series("a")[0]} == {"step", "value", "time"}


def test_a_check_names_the_lines(folder: Path) -> None:
    """What is bad in each file, by number; nothing where all is well."""
    assert check_run(folder) == []
    (folder / "metrics.jsonl").write_bytes(b"{}\n" + (folder / "metrics.jsonl").read_bytes() + b"x")
    (folder / "graph.json").write_bytes(b"[")
    (folder / "events.jsonl").unlink()

    assert [problem.split(":")[0] for problem in check_run(folder)] == [
        "`metrics.jsonl` has 1 bad line",
        "`metrics.jsonl` ends in an unfinished line, 5",
        "`events.jsonl` cannot be read",
        "`graph.json` cannot be read",
    ]


def test_a_check_says_that_a_run_goes_on(run: Run) -> None:
    """One that runs has not ended; one that crashed did not."""
    assert check_run(run.dir) == ["the run has not ended yet"]
    running(run, **GONE)
    assert check_run(run.dir) == [
        f"the run did not end: process {GONE['pid']} ended and did not say how"
    ]


@pytest.mark.parametrize("edges", [[["plus", "gone"]], [["gone", "plus"]]])
def test_an_edge_to_nowhere_breaks_the_graph(folder: Path, edges: list[list[str]]) -> None:
    """It is read as none, so that nobody draws it, and the check says why."""
    graph = json.loads((folder / "graph.json").read_text())
    (folder / "graph.json").write_text(json.dumps(graph | {"edges": edges}))

    assert RunRecord(folder).graph() is None
    assert check_run(folder) == [
        "`graph.json` cannot be read: an edge in it ends at 'gone', which is no node"
    ]


def test_two_nodes_of_one_id_break_the_graph(folder: Path) -> None:
    """No picture could tell them apart."""
    graph = json.loads((folder / "graph.json").read_text())
    (folder / "graph.json").write_text(json.dumps(graph | {"nodes": graph["nodes"] * 2}))

    assert RunRecord(folder).graph() is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_check_does_not_wait_for_a_pipe(folder: Path) -> None:
    """It is no file of a run."""
    (folder / "metrics.jsonl").unlink()
    os.mkfifo(folder / "metrics.jsonl")

    assert check_run(folder) == ["`metrics.jsonl` is no file"]

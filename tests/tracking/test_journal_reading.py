"""`RunRecord.journal()`: what is read back of the journal of a flow."""

from pathlib import Path

import pytest
from msgspec.json import encode

from soma import track_run
from soma.tracking import RouteLine, RunRecord, check_run
from tests.viz.flows_made import judging, record_lines, tuning

ROUTE = RouteLine(at="a/route", request="r", node="a", label="x", labels=("x",), start=0, seconds=0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the directory of a run that has ended."""
    with track_run("flow", root=tmp_path) as run:
        pass
    return run.dir


def test_what_was_written_is_read(folder: Path) -> None:
    """Each kind of line comes back as it was."""
    written = [*tuning(), *judging()]
    record_lines(folder, written)

    assert RunRecord(folder).journal() == written
    assert check_run(folder) == []


def test_a_run_of_no_flow_has_none(folder: Path) -> None:
    """Where there is no journal there are no lines, and nothing is wrong."""
    assert RunRecord(folder).journal() == []


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'{"effect": "os.system"}',
        b'{"effect": "route", "at": 3}',
        b'{"effect": "begun", "at": "a"}',
        b"[" * 100_000,
        b'{"effect": "answered", "at": "a", "node": "a", "start": 1, "answer": %s}'
        % (b"[" * 200 + b"]" * 200),
        b"\xff\xfe",
        b"x" * (2 << 20),
    ],
)
def test_a_foreign_line_is_left_out(line: bytes, folder: Path) -> None:
    """What is no effect, too deep or too long is passed over, and the rest is read."""
    (folder / "journal.jsonl").write_bytes(line + b"\n" + encode(ROUTE) + b"\n")

    assert RunRecord(folder).journal() == [ROUTE]
    assert "bad line" in check_run(folder)[0]


def test_a_torn_end_is_left_out(folder: Path) -> None:
    """Half a line, as a crash leaves it, is no effect yet."""
    (folder / "journal.jsonl").write_bytes(encode(ROUTE) + b"\n" + encode(ROUTE)[:40])

    assert RunRecord(folder).journal() == [ROUTE]
    assert check_run(folder) == ["`journal.jsonl` ends in an unfinished line, 2"]


def test_a_replayed_turn_is_no_turn(folder: Path) -> None:
    """A node of a resumed flow that only found what it had done before has no turn of that."""
    line = b'{"event":"node","node":"a","phase":"forward","start":1,"seconds":2%s}\n'
    with (folder / "events.jsonl").open("ab") as file:
        file.write(line % b"" + line % b',"cached":true')
    without = RunRecord(folder).timings()
    record_lines(folder, [ROUTE])

    assert [one.cached for one in without] == [False, True]
    assert [one.cached for one in RunRecord(folder).timings()] == [False]
    assert RunRecord(folder).cache_activity() == []

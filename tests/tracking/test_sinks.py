"""Sinks while a run goes on: what they get, and that none of them stops a run."""

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import soma
from soma.errors import InvalidInput, SinkWarning
from soma.tracking import Manifest, Point, RunRecord, Sink, Standing, check_run, tell
from soma.tracking._feed import Feed
from tests.tracking.filters import Plus, script

ENDS = """
import sys
import soma
from soma.tracking import Sink
class Tells(Sink):
    def points(self, points):
        print(*(point.name for point in points))
    def close(self, standing):
        print(standing.state, standing.error)
with soma.track_run("ends", root=sys.argv[1], sinks=[Tells()]) as run:
    run.log("loss", 1.0)
    {end}
"""
FORKED = """
import os, sys
import soma
from soma.tracking import Sink
class Tells(Sink):
    def points(self, points):
        print(os.getpid() == parent, *(point.name for point in points), flush=True)
parent = os.getpid()
with soma.track_run("forked", root=sys.argv[1], sinks=[Tells()]) as run:
    run.log("before", 1.0)
    child = os.fork()
    if child == 0:
        run.log("child", 1.0)
        run.finish()
        os._exit(0)
    os.waitpid(child, 0)
"""


class Keeping(Sink):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.got: list[Point] = []
        self.arrived = threading.Event()

    def start(self, run: Manifest) -> None:
        self.calls.append("start")
        self.run = run

    def points(self, points: Sequence[Point]) -> None:
        self.calls.append("points")
        self.got += points
        self.arrived.set()

    def findings(self, flags: Sequence[Mapping[str, Any]]) -> None:
        self.calls.append("findings")

    def close(self, standing: Standing) -> None:
        self.calls.append("close")
        self.standing = standing


class Failing(Sink):
    """Fails in one of its methods."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.calls = 0
        setattr(self, where, self._fail)
        self.error = error

    def points(self, points: Sequence[Point]) -> None:
        pass

    def _fail(self, _: object) -> None:
        self.calls += 1
        raise self.error


class Hanging(Sink):
    """Takes points, and never returns before it is told to."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def points(self, points: Sequence[Point]) -> None:
        self.go.wait()


def recorded(folder: Path) -> list[Point]:
    """Return the points of a run, in the order of their times."""
    record = RunRecord(folder)
    found = [
        Point(name, **point)
        for name in record.metric_names()
        for point in record.metric_series(name)
    ]
    return sorted(found, key=lambda point: point.time)


def test_a_sink_gets_what_is_recorded(tmp_path: Path) -> None:
    """It is started, gets every point in order, and is closed."""
    sink = Keeping()
    with soma.track_run("test", params={"lr": 0.1}, root=tmp_path, sinks=[sink]) as run:
        for step in range(3000):
            run.log(f"metric {step % 1000}", step / 3)

    assert sink.calls[0] == "start"
    assert set(sink.calls[1:-1]) == {"points"}
    assert sink.calls[-1] == "close"
    assert sink.run == run.manifest
    assert sink.standing.state == "completed"
    assert sink.got == recorded(run.dir)


def test_a_graph_hands_its_run_over(tmp_path: Path) -> None:
    """`Graph.track_run` takes sinks too."""
    sink = Keeping()
    g = soma.Graph.somatize(Plus(1), cache=None)
    with g.track_run("test", root=tmp_path, sinks=[sink]) as run:
        run.log("answer", g.forward(1.0))

    assert [point.value for point in sink.got] == [2.0]


def test_points_come_while_the_run_goes_on(tmp_path: Path) -> None:
    """A point is with the sink before the run has ended."""
    sink = Keeping()
    with soma.track_run("test", root=tmp_path, sinks=[sink]) as run:
        run.log("loss", 0.5)
        assert sink.arrived.wait(20)
        assert sink.calls == ["start", "points"]


@pytest.mark.parametrize("where", ["start", "points", "close"])
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), RuntimeError("\udc80")])
def test_a_sink_that_fails_is_told_of_once(
    where: str, error: BaseException, tmp_path: Path
) -> None:
    """A warning and a diagnostic say so; the run completes, and another sink gets all."""
    failing, other = Failing(where, error), Keeping()
    with (
        pytest.warns(SinkWarning, match="takes no more of the run") as told,
        soma.track_run("test", root=tmp_path, sinks=[failing, other]) as run,
    ):
        run.log("loss", 0.5)
    record = RunRecord(run.dir)
    (found,) = record.diagnostics()

    assert len(told) == failing.calls == 1
    assert (found.level, found.code) == ("warning", "SINK")
    assert f"`Failing` takes no more of the run `{run.id}`: {type(error).__name__}" in found.message
    assert record.state == "completed"
    assert other.got == recorded(run.dir)
    assert check_run(run.dir) == []
    assert "takes no more of the run" in soma.RunView(run.dir).to_html(static=True)


def test_a_warning_that_is_an_error_stops_no_run(tmp_path: Path) -> None:
    """The diagnostic tells all the same."""
    with soma.track_run("test", root=tmp_path, sinks=[Failing("start", OSError("full"))]) as run:
        run.log("loss", 0.5)

    assert RunRecord(run.dir).state == "completed"
    assert "OSError: full" in RunRecord(run.dir).diagnostics()[0].message


def test_a_sink_that_hangs_is_left_behind(tmp_path: Path) -> None:
    """The end of a run waits for signs of life, and no longer."""
    with soma.track_run("test", root=tmp_path) as run:
        run.log("loss", 0.5)
    sink = Hanging()
    feed = Feed(sink, run.dir, run.manifest, patience=0.2)
    feed.end(Standing("completed"))
    with pytest.warns(SinkWarning, match=r"no sign of life for 0\.2 seconds"):
        feed.finish()
    sink.go.set()

    assert len(RunRecord(run.dir).diagnostics()) == 1


@pytest.mark.process
@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("pass", "completed None"),
        ("raise ValueError('mine')", "failed ValueError: mine"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", "interrupted KeyboardInterrupt"),
        ("raise SystemExit(3)", "interrupted SystemExit: 3"),
    ],
)
def test_a_sink_hears_how_the_run_ended(end: str, told: str, tmp_path: Path) -> None:
    """It gets the last points first; the error goes on its way."""
    done = script(ENDS.format(end=end), tmp_path, check=False)

    assert done.stdout.splitlines() == ["loss", told]


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_points_of_a_forked_child_come_through_its_parent(tmp_path: Path) -> None:
    """The child talks to no sink itself; what it logs arrives once."""
    lines = script(FORKED, tmp_path).stdout.splitlines()

    assert sorted(" ".join(lines).replace("True", "").split()) == ["before", "child"]


@pytest.mark.parametrize("given", ["mlflow", ["mlflow"], Keeping, 3])
def test_what_is_no_sink_is_refused(given: Any, tmp_path: Path) -> None:
    """The error shows what a list of sinks looks like, and no run was begun."""
    with pytest.raises(InvalidInput, match=r"a list of sinks is wanted, such as `\[soma"):
        soma.track_run("test", root=tmp_path, sinks=given)

    assert not (tmp_path / "runs").exists()


def test_half_a_line_is_not_handed_over(tmp_path: Path) -> None:
    """Of a run that was killed a sink gets the whole lines, and the name of its directory."""
    with soma.track_run("test", root=tmp_path) as run:
        run.log("loss", 0.5)
    with (run.dir / "metrics.jsonl").open("ab") as file:
        file.write(b'{"name":"loss","st')
    moved = run.dir.rename(tmp_path / "elsewhere")
    sink = Keeping()

    assert tell(sink, RunRecord(moved), [], Standing("crashed")) == 1
    assert (sink.run.id, sink.calls) == ("elsewhere", ["start", "points", "close"])


def test_a_sink_takes_one_run_at_a_time(tmp_path: Path) -> None:
    """A sink given to a second run while it takes the first is told of, and mixes nothing."""
    sink = Keeping()
    with soma.track_run("first", root=tmp_path, sinks=[sink]) as first:
        first.log("loss", 1.0)
        assert sink.arrived.wait(30)
        with pytest.warns(SinkWarning, match=f"this sink takes the run `{first.id}`"):
            kept_in("second", tmp_path, sink)

    assert [point.value for point in sink.got] == [1.0]


def kept_in(name: str, root: Path, sink: Sink) -> None:
    """Keep a run of one point."""
    with soma.track_run(name, root=root, sinks=[sink]) as run:
        run.log("loss", 2.0)

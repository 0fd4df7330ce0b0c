"""Run directories and real processes: killed, forked, many at once, beside a reader, no room."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from soma.tracking import RunRecord, check_run, run_records
from tests.processes import started
from tests.tracking.filters import script, strict

pytestmark = pytest.mark.process

KILLED = """
import os, signal, sys
from soma.tracking import track_run
with track_run("killed", root=sys.argv[1]) as run:
    for step in range(50):
        run.log("loss", step)
    os.kill(os.getpid(), signal.SIGKILL)
"""
CROWD = """
import os, sys, time
from pathlib import Path
from soma.tracking import track_run
root, number = Path(sys.argv[1]), sys.argv[2]
(root / f"ready-{number}").touch()
while not (root / "go").exists():
    time.sleep(0.001)
with track_run("crowd", root=root) as run:
    for step in range(20):
        run.log("number", int(number))
"""
WRITER = """
import sys
from soma import Filter, Graph
class Same(Filter):
    def forward(self, x, state):
        return x
g = Graph.somatize(Same(), cache=None)
with g.track_run("writer", root=sys.argv[1]) as run:
    for step in range(3000):
        g.forward(step)
        run.log("loss", step)
"""
FORKED = """
import os, signal, sys
from soma.tracking import RunRecord, track_run
try:
    with track_run("parent", root=sys.argv[1]) as run:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            run.log("child", 1.0)
            raise SystemExit(7)
        assert os.waitpid(child, 0)[1] == 7 << 8
        assert RunRecord(run.dir).state == "running", RunRecord(run.dir).state
        run.log("parent", 1.0)
except SystemExit as error:
    os._exit(error.code)
"""
FULL = """
import resource, sys
from soma import Filter, Graph
from soma.tracking._lines import StepLine
class Same(Filter):
    def forward(self, x, state):
        return x
class Fails(Filter):
    def forward(self, x, state):
        raise KeyError("mine")
which, root = sys.argv[1:]
g = Graph.somatize(Fails() if which == "own" else Same(), cache=None)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
with g.track_run("full", root=root) as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, most))
    while which == "points":
        run.log("loss", 1.0)
    for _ in range(100):
        run.write(StepLine(step=1, time=0.0))
    for _ in range(5):
        g.forward(1)
"""
MODULE = """
import resource, sys
import torch
from torch import nn
from soma import DifferentiableFilter, Graph
class Dense(DifferentiableFilter):
    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], 1)
g = Graph.somatize(Dense(), cache=None)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
with g.track_run("full", root=sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, most))
    g.fit(torch.zeros(4, 2), torch.zeros(4, 1), epochs=3, progress=False)
    print("trained")
"""
BLOCKED = """
import sys
for name in ("torch", "numpy", "plotly", "pandas", "sklearn", "safetensors", "blake3"):
    sys.modules[name] = None
from soma.tracking import RunRecord, run_records
(record,) = run_records(sys.argv[1])
print(record.state, len(record.metric_series("loss")), len(record.timings()), record.graph().name)
"""


def only_run(root: Path) -> RunRecord:
    """Return the one run that there is."""
    (record,) = run_records(root)
    return record


def test_kill_9_loses_no_point(tmp_path: Path) -> None:
    """All points whose `log` returned are there, and the run is `crashed` at once."""
    died = script(KILLED, tmp_path, check=False)
    record = only_run(tmp_path)

    assert died.returncode == -signal.SIGKILL
    assert [point["value"] for point in record.metric_series("loss")] == [*map(float, range(50))]
    assert record.state == "crashed"
    assert "ended and did not say how" in record.error
    assert len(check_run(record.dir)) == 1


def test_a_zombie_has_crashed(tmp_path: Path) -> None:
    """A process that died and that nobody has waited for is not alive."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    while (
        "Z (" not in (stat := Path(f"/proc/{process.pid}/stat").read_text()) and ") Z" not in stat
    ):
        time.sleep(0.01)

    assert only_run(tmp_path).state == "crashed"
    process.wait()


@pytest.mark.slow
def test_fifty_starts_at_one_moment_are_fifty_runs(tmp_path: Path) -> None:
    """Each has a directory of its own, and no point lands in another one's."""
    command = [sys.executable, "-c", CROWD, str(tmp_path)]
    with started([[*command, str(number)] for number in range(50)]) as crowd:
        while len([*tmp_path.glob("ready-*")]) < 50:
            time.sleep(0.01)
        (tmp_path / "go").touch()
        assert [one.wait() for one in crowd] == [0] * 50
    series = [
        {point["value"] for point in record.metric_series("number")}
        for record in run_records(tmp_path)
    ]

    assert sorted(series, key=min) == [{float(number)} for number in range(50)]
    assert all(check_run(record.dir) == [] for record in run_records(tmp_path))


def test_a_reader_beside_a_writer_never_fails(tmp_path: Path) -> None:
    """No exception, never fewer points or events than before, and all of them at the end."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
    points = events = 0
    states = set()
    while writer.poll() is None:
        for record in run_records(tmp_path):
            states.add(record.state)
            now = len(record.metric_series("loss")), len(record.events())
            assert now >= (points, events)
            points, events = now
            assert record.graph() is None or record.graph().nodes[0].class_name == "Same"
            record.cache_activity()
            record.diagnostics()

    record = only_run(tmp_path)
    assert writer.wait() == 0
    assert states <= {"running", "completed"}
    assert (len(record.metric_series("loss")), len(record.timings())) == (3000, 3000)


def test_a_forked_child_is_not_the_run(tmp_path: Path) -> None:
    """It may log, but when it ends, by an error too, the run of its parent goes on."""
    script(FORKED, tmp_path)
    record = only_run(tmp_path)

    assert (record.state, record.metric_names()) == ("completed", ["child", "parent"])


@pytest.mark.parametrize("which", ["points", "events"])
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path, which: str) -> None:
    """From `log` at once; where only events are lost, at the end of the run."""
    died = script(FULL, which, tmp_path, check=False)
    record = only_run(tmp_path)
    name = "metrics.jsonl" if which == "points" else "events.jsonl"

    assert "RunNotWritten" in died.stderr
    assert f"{record.dir / name}` cannot be written: File too large" in died.stderr
    assert (record.state, name in record.error) == ("failed", True)
    assert len(record.metric_series("loss")) > 20 or which == "events"


def test_a_full_disk_breaks_off_no_training(tmp_path: Path) -> None:
    """What cannot be written of graph and modules is told at the end of the run."""
    died = script(MODULE, tmp_path, check=False)

    assert died.stdout == "trained\n"
    assert "RunNotWritten" in died.stderr


def test_a_full_disk_hides_no_error_of_the_user(tmp_path: Path) -> None:
    """Theirs is raised, and the lost events are a note on it."""
    died = script(FULL, "own", tmp_path, check=False)

    assert "KeyError: 'mine'" in died.stderr.splitlines()[-3:][0]
    assert "is not whole" in died.stderr.splitlines()[-1]
    assert only_run(tmp_path).error == "KeyError: 'mine'"


def test_a_run_is_read_without_any_library(tmp_path: Path) -> None:
    """Neither torch, NumPy, plotly nor what the cache needs is there."""
    script(WRITER.replace("3000", "3"), tmp_path)
    read = script(BLOCKED, tmp_path)

    assert read.stdout.split() == ["completed", "3", "3", "graph"]
    assert strict(only_run(tmp_path).dir)

"""Processes that end in the middle of a flow, in every effect of it, and others that go on."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from soma.tracking import RunRecord
from tests.processes import started

ROOT = Path(__file__).parents[2]
EFFECTS = [
    "model task",
    "note 1",
    "pay 5",
    "model paid",
    "model noted and paid",
    "model noted and paid!",
    "model left noted and paid!!",
    "model right noted and paid!!",
]
LAST = "left noted and paid!!!\nright noted and paid!!!\n"
UNKNOWN = "It is not known whether this call took effect"


def command(folder: Path, at: int) -> list[str]:
    """Return the command of a process that runs the flow, or goes on with it."""
    arguments = [str(folder / "root"), str(folder / "notes"), str(at)]
    return [sys.executable, "-m", "tests.flow.crashing", *arguments]


def run(folder: Path, at: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run such a process to its end."""
    return subprocess.run(
        command(folder, at), cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def notes(folder: Path) -> Counter[str]:
    """Return how often each effect happened."""
    return Counter((folder / "notes").read_text().splitlines())


def record(folder: Path) -> RunRecord:
    """Return the only run."""
    (one,) = (folder / "root" / "runs").iterdir()
    return RunRecord(one)


def test_without_a_crash_each_effect_happens_once(tmp_path: Path) -> None:
    """The flow of these tests does what they assume."""
    ended = run(tmp_path)

    assert (ended.stdout, ended.stderr) == (LAST, "")
    assert notes(tmp_path) == Counter(EFFECTS)


@pytest.mark.parametrize("at", [number for number in range(1, 9) if number != 3])
def test_a_killed_run_goes_on(tmp_path: Path, at: int) -> None:
    """Only the effect in which it was killed happens again, and the output is the same."""
    assert run(tmp_path, at).returncode == -signal.SIGKILL
    assert record(tmp_path).state == "crashed"
    ended = run(tmp_path)

    assert (ended.stdout, ended.stderr) == (LAST, "")
    assert notes(tmp_path) == Counter([*EFFECTS, EFFECTS[at - 1]])
    assert record(tmp_path).state == "completed"


def test_a_call_that_must_not_happen_twice_is_told_as_unknown(tmp_path: Path) -> None:
    """The model hears that nobody knows, and the tool is not called again."""
    assert run(tmp_path, 3).returncode == -signal.SIGKILL
    ended = run(tmp_path)

    assert (notes(tmp_path)["pay 5"], UNKNOWN in ended.stdout) == (1, True)
    assert notes(tmp_path)["note 1"] == 1


@pytest.mark.slow  # several processes
def test_a_run_that_is_killed_again_and_again_ends(tmp_path: Path) -> None:
    """Each process gets one effect further."""
    for number in (1, 3, 5, 7):
        assert run(tmp_path, number).returncode == -signal.SIGKILL
    ended = run(tmp_path)

    assert ended.stderr == ""
    assert notes(tmp_path).most_common(1)[0][1] <= 2
    assert notes(tmp_path)["pay 5"] == 1


@pytest.mark.slow  # several processes
def test_ctrl_c_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a tool is an interruption, and the tool is called again."""
    with started([command(tmp_path, -1)], cwd=ROOT) as (process,):
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)

    assert (record(tmp_path).state, record(tmp_path).error) == ("interrupted", "KeyboardInterrupt")
    assert "The run can go on where it stands: `flow.resume(" in told
    assert run(tmp_path).stdout == LAST
    assert notes(tmp_path) == Counter([*EFFECTS, "note 1"])


def test_a_run_belongs_to_one_process(tmp_path: Path) -> None:
    """While its process lives, another one is refused."""
    with started([command(tmp_path, -1)], cwd=ROOT) as (process,):
        assert process.stdout is not None
        process.stdout.readline()
        other = run(tmp_path)

    assert "RunBusy" in other.stderr


@pytest.mark.slow  # several processes
def test_of_two_that_take_up_a_run_one_gets_it(tmp_path: Path) -> None:
    """The other is refused, and no effect happens twice."""
    run(tmp_path, 2)
    with started([command(tmp_path, 0)] * 2, cwd=ROOT) as processes:
        ended = [process.communicate(timeout=60) for process in processes]

    outputs = {out for out, _ in ended}
    assert LAST in outputs
    assert all(out or "RunBusy" in told for out, told in ended)
    assert notes(tmp_path) == Counter([*EFFECTS, "note 1"])

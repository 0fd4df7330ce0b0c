"""A run that is taken up again goes on in its directory; secrets stay out of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from soma import RunView
from soma.errors import InvalidInput, RunBusy, RunNotWritten, UnknownRun
from soma.files import locked
from soma.tracking import RunRecord, Secrets, continue_run, named_secrets, track_run


def interrupted(root: Path) -> Path:
    """Return the directory of a run that ended by Ctrl-C."""
    run = track_run("one", root=root)
    run.log("loss", 1.0)
    run.finish(KeyboardInterrupt())
    return run.dir


def test_points_and_times_go_on(tmp_path: Path) -> None:
    """Counted points follow the last one, and no time is earlier."""
    folder = interrupted(tmp_path)
    with continue_run(folder) as run:
        run.log("loss", 0.5)

    points = RunView(folder).metric_series("loss")

    assert [(point["step"], point["value"]) for point in points] == [(0, 1.0), (1, 0.5)]
    assert points[0]["time"] < points[1]["time"]


def test_it_is_running_and_then_ends_anew(tmp_path: Path) -> None:
    """The status is that of the last part, and the directory is the same."""
    folder = interrupted(tmp_path)
    with continue_run(folder) as run:
        during = RunRecord(folder).state

    assert (during, RunRecord(folder).state, run.dir) == ("running", "completed", folder)
    kinds = [event["event"] for event in RunRecord(folder).events()]
    assert kinds == ["run_started", "run_continued"]


def test_a_run_that_goes_on_is_refused(tmp_path: Path) -> None:
    """Also in its own process."""
    with track_run("one", root=tmp_path) as run, pytest.raises(RunBusy):
        continue_run(run.dir)


def test_a_run_that_another_takes_up_is_refused(tmp_path: Path) -> None:
    """The lock is held for that moment."""
    folder = interrupted(tmp_path)

    with locked(str(folder / "lock")) as got, pytest.raises(RunBusy):
        continue_run(folder)
    assert got


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    """However it ends."""
    code = (
        "import os, sys; from soma.files import locked\n"
        "with locked(sys.argv[1]) as got: os._exit(0 if got else 1)"
    )
    path = str(tmp_path / "lock")
    command = [sys.executable, "-c", code, path]
    codes = [subprocess.run(command, check=False).returncode for _ in range(2)]

    assert codes == [0, 0]


def test_what_is_no_whole_run_is_not_taken_up(tmp_path: Path) -> None:
    """A missing directory and a status of nobody are told apart."""
    folder = interrupted(tmp_path)
    (folder / "status.json").write_text("{}")

    with pytest.raises(RunNotWritten, match="cannot go on"):
        continue_run(folder)
    with pytest.raises(UnknownRun):
        continue_run(tmp_path / "nothing")


def test_secrets_of_a_run_are_hidden_everywhere(tmp_path: Path) -> None:
    """In its name, its parameters and its error."""
    with (
        pytest.raises(ValueError, match="sesame"),
        track_run("open-sesame", root=tmp_path, params={"key": "sesame"}, secrets=["sesame"]),
    ):
        raise ValueError("no sesame")
    (folder,) = (tmp_path / "runs").iterdir()

    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]

    assert not any("sesame" in text for text in texts)
    assert RunView(folder).error == "ValueError: no ***"


@pytest.mark.parametrize(
    ("given", "hidden"),
    [
        ("a sesame b", "a *** b"),
        ({"sesame": ["sesame", 1, None]}, {"***": ["***", 1, None]}),
        (("x", {"y": "sesame"}), ("x", {"y": "***"})),
        (12, 12),
    ],
)
def test_texts_in_plain_data_are_hidden(given: object, hidden: object) -> None:
    """Keys and values of containers, at any depth."""
    assert Secrets(["sesame"]).hide(given) == hidden


def test_the_longer_of_two_is_hidden_whole() -> None:
    """One secret may be the beginning of another."""
    assert Secrets(["sesame", "sesame-open"]).text("sesame-open") == "***"


def test_short_secrets_are_refused() -> None:
    """They would be found everywhere."""
    with pytest.raises(InvalidInput, match="4 characters"):
        Secrets(["abc"])


def test_variables_are_secret_by_their_names() -> None:
    """Values that are too short for a key are left."""
    given = {
        "A_TOKEN": "12345678",
        "DB_PASSWORD": "long-enough",
        "KEY": "short",
        "HOME": "/home/me",
    }

    assert named_secrets(given) == {"12345678", "long-enough"}

"""Runs in Weights & Biases, read back from the file that `wandb sync` would send."""

import json
from pathlib import Path
from typing import Any

import pytest

import soma
from soma.errors import SinkWarning
from soma.integrations.sinks import WandbSink, export_run
from soma.tracking import RunRecord
from tests.integrations.sinks_read import (
    HARD,
    by_name,
    hard_run,
    points,
    wandb_history,
    wandb_records,
)
from tests.tracking.filters import script
from tests.viz.audits_made import audited, chain

CALLS_NOBODY = """
import sys
def watch(event, arguments):
    # Printed, since an error in here would be caught by whoever makes the call.
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        print(event, arguments, flush=True)
    if event in ("socket.connect", "socket.sendto") and not isinstance(arguments[1], (str, bytes)):
        print(event, arguments, flush=True)
sys.addaudithook(watch)
import soma
from soma.integrations.sinks import WandbSink
with soma.track_run("quiet", root=sys.argv[1], sinks=[WandbSink(sys.argv[1])]) as run:
    run.log("loss", 0.5)
print(run.id)
"""
KILLED = """
import os, signal, sys, threading
import soma
from soma.integrations.sinks import WandbSink
class Told(WandbSink):
    def points(self, points):
        super().points(points)
        told.set()
told = threading.Event()
with soma.track_run("killed", root=sys.argv[1], sinks=[Told(sys.argv[2])]) as run:
    run.log("loss", 0.0)
    assert told.wait(50)
    for step in range(1, 500):
        run.log("loss", step)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def one_of(folder: Path, kind: str) -> Any:
    """Return the last record of a kind."""
    return [one for one in wandb_records(folder) if one.WhichOneof("record_type") == kind][-1]


def test_wandb_holds_what_is_recorded(tmp_path: Path) -> None:
    """Each point stands in a row, with its exact value and its step as `soma_step`."""
    folder = hard_run(tmp_path, sinks=[WandbSink(tmp_path)])
    found: dict[str, list[tuple[int, str]]] = {}
    for row in wandb_history(tmp_path):
        for name in row.keys() - {"_timestamp", "_runtime", "_step", "soma_step"}:
            found.setdefault(name, []).append((row["soma_step"], repr(float(row[name]))))
    wanted = by_name(points(folder))

    assert len(found) == len(wanted) == len({name for name, _, _ in HARD})
    for name in ("loss", "far", "a.b/c d:é", "../../up"):
        assert found[name] == wanted[name]
    assert sorted(found.values()) == sorted(wanted.values())


def test_wandb_knows_params_and_end(tmp_path: Path) -> None:
    """Config, tags and the exit code are those of the run."""
    params = {"lr": 0.1, "deep": {"on": True}}
    with (
        pytest.raises(KeyError),
        soma.track_run(
            "fails", tags=["demo"], params=params, root=tmp_path, sinks=[WandbSink(tmp_path)]
        ) as run,
    ):
        raise KeyError("mine")
    config = {
        one.key: json.loads(one.value_json) for one in one_of(tmp_path, "config").config.update
    }
    begun = one_of(tmp_path, "run").run

    assert (config["lr"], config["deep.on"], config["soma_kind"]) == (0.1, True, "train")
    assert (begun.run_id, begun.display_name, [*begun.tags]) == (run.id, "fails", ["demo"])
    assert one_of(tmp_path, "exit").exit.exit_code == 1


def test_wandb_knows_what_an_audit_flagged(tmp_path: Path) -> None:
    """The findings stand in the summary."""
    view = audited(tmp_path, chain(4, shrinks=1e-4))
    export_run(view.dir, WandbSink(tmp_path))
    summary = {
        item.key: item.value_json
        for one in wandb_records(tmp_path)
        if one.WhichOneof("record_type") == "summary"
        for item in one.summary.update
    }

    assert summary["soma_findings"].startswith('"net: VANISHING')


def test_exported_twice_is_there_once(tmp_path: Path) -> None:
    """The second export replaces the first."""
    folder = hard_run(tmp_path)
    for _ in range(2):  # in one second, perhaps
        export_run(folder, WandbSink(tmp_path))
    before = len(wandb_history(tmp_path))
    export_run(folder, WandbSink(tmp_path))

    assert len(wandb_history(tmp_path)) == before
    assert len([*tmp_path.glob("wandb/offline-run-*")]) == 1


@pytest.mark.process
def test_a_killed_run_is_replaced_by_an_export(tmp_path: Path) -> None:
    """One offline run is left, with all that the killed process logged."""
    script(KILLED, tmp_path, tmp_path, check=False)
    (folder,) = (tmp_path / "runs").iterdir()
    export_run(folder, WandbSink(tmp_path))

    assert [row["loss"] for row in wandb_history(tmp_path)] == [*range(500)]
    assert one_of(tmp_path, "exit").exit.exit_code == 1


def test_thousands_of_metrics(tmp_path: Path) -> None:
    """All names arrive."""
    with soma.track_run("many", root=tmp_path, sinks=[WandbSink(tmp_path)]) as run:
        for number in range(2500):
            run.log(f"metric {number}", number)
    found = [
        (name, value)
        for row in wandb_history(tmp_path)
        for name, value in row.items()
        if name.startswith("metric")
    ]

    assert sorted(found) == sorted((f"metric {number}", number) for number in range(2500))


def test_the_users_own_run_stays_theirs(tmp_path: Path) -> None:
    """Points go into the active run, which is not finished, and keeps its config."""
    import wandb

    settings = wandb.Settings(console="off", silent=True)
    with wandb.init(
        mode="offline", dir=str(tmp_path), config={"lr": "theirs"}, settings=settings
    ) as mine:
        for loss in (0.5, 0.25):
            options = {"params": {"lr": 0.1}, "root": tmp_path, "sinks": [WandbSink()]}
            with soma.track_run("ours", **options) as run:
                run.log("loss", loss)
        assert wandb.run is mine
        mine.log({"theirs": 1})
        assert mine.config["lr"] == "theirs"

    assert [row.get("loss") for row in wandb_history(tmp_path)] == [0.5, 0.25, None]


def test_our_run_is_not_the_programs(tmp_path: Path) -> None:
    """`wandb.run` stays empty while a run of ours goes on."""
    import wandb

    with soma.track_run("ours", root=tmp_path, sinks=[WandbSink(tmp_path)]) as run:
        run.log("loss", 0.5)
        assert wandb.run is None

    wandb.teardown()
    assert wandb.run is None


@pytest.mark.process
def test_nobody_is_called(tmp_path: Path) -> None:
    """An offline run asks for no address and opens no connection, nor at the program's end."""
    done = script(CALLS_NOBODY, tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()

    assert done.stdout == f"{folder.name}\n"


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    """The sink is told of and left alone; the run completes."""
    (tmp_path / "out").write_text("in the way")
    with (
        pytest.warns(SinkWarning, match="WandbSink"),
        soma.track_run("test", root=tmp_path, sinks=[WandbSink(tmp_path / "out")]) as run,
    ):
        run.log("loss", 0.5)

    assert RunRecord(run.dir).state == "completed"

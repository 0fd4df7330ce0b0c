"""Runs in MLflow, read back by its client from a database on disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import soma
from soma.errors import SinkWarning
from soma.integrations.sinks import MLflowSink, export_run
from soma.tracking import RunRecord
from tests.integrations.sinks_read import hard_run, points
from tests.tracking.filters import script
from tests.viz.audits_made import audited, chain

pytestmark = [
    pytest.mark.slow,  # making a database takes MLflow seconds
    # MLflow's own: how it asks its database.
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]

LARGEST = 1.7976931348623157e308
INTERRUPTED = """
import os, signal, sys
import soma
from soma.integrations.sinks import MLflowSink
with soma.track_run("stopped", root=sys.argv[1], sinks=[MLflowSink(sys.argv[2])]) as run:
    run.log("loss", 0.5)
    os.kill(os.getpid(), signal.SIGINT)
"""

KILLED = """
import os, signal, sys, threading
import soma
from soma.integrations.sinks import MLflowSink
class Told(MLflowSink):
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


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give a database, made once: that takes MLflow seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"


@pytest.fixture
def client(uri: str) -> Iterator[Any]:
    """Give MLflow's own client."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def the_run(client: Any, id: str) -> Any:
    """Return the one run of MLflow that is of a run of ours."""
    (found,) = client.search_runs(["0"], filter_string=f"tags.`soma.run_id` = '{id}'")
    return found


def series(client: Any, run: Any) -> dict[str, set[tuple[int, int, str]]]:
    """Return step, time and value of each metric."""
    return {
        name: {
            (one.step, one.timestamp, repr(one.value))
            for one in client.get_metric_history(run.info.run_id, name)
        }
        for name in run.data.metrics
    }


def test_mlflow_holds_what_is_recorded(client: Any, uri: str, tmp_path: Path) -> None:
    """Each point has its step, its time, and its value, with infinity as the largest float."""
    folder = hard_run(tmp_path, sinks=[MLflowSink(uri)])
    run = the_run(client, folder.name)
    began = RunRecord(folder).manifest.created_at
    wanted: dict[str, set[tuple[int, int, str]]] = {}
    for point in points(folder):
        value = repr(point.value).replace("inf", repr(LARGEST))
        time = int((began + point.time) * 1000)
        wanted.setdefault(point.name, set()).add((point.step, time, value))
    found = series(client, run)

    assert run.info.status == "FINISHED"
    assert {name: found[name] for name in ("loss", "far", "a.b/c d:é", "_hidden")} == {
        name: wanted[name] for name in ("loss", "far", "a.b/c d:é", "_hidden")
    }
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, wanted.values()))
    assert run.data.params["lr"] == "0.1"
    assert run.data.params["deep.list"] == '[1, "NaN"]'
    assert run.data.tags["soma.kind"] == "train"


def test_exported_twice_is_exported_once(client: Any, uri: str, tmp_path: Path) -> None:
    """A second export finds the run and all its points there."""
    folder = hard_run(tmp_path)
    export_run(folder, MLflowSink(uri))
    first = the_run(client, folder.name)
    before = series(client, first)
    export_run(folder, MLflowSink(uri))
    again = the_run(client, folder.name)

    assert again.info.run_id == first.info.run_id
    assert series(client, again) == before


def test_mlflow_knows_what_an_audit_flagged(client: Any, uri: str, tmp_path: Path) -> None:
    """The findings are a tag."""
    view = audited(tmp_path, chain(4, shrinks=1e-4))
    export_run(view.dir, MLflowSink(uri))

    assert the_run(client, view.id).data.tags["soma.findings"].startswith("net: VANISHING")


@pytest.mark.parametrize(
    ("error", "status"), [(KeyError("mine"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_a_run_that_ended_early(
    error: BaseException, status: str, client: Any, uri: str, tmp_path: Path
) -> None:
    """MLflow has its word for that, and the error as a tag."""
    with (
        pytest.raises(type(error)),
        soma.track_run("ends", root=tmp_path, sinks=[MLflowSink(uri)]) as run,
    ):
        raise error
    found = the_run(client, run.id)

    assert found.info.status == status
    assert found.data.tags["soma.error"].startswith(type(error).__name__)


@pytest.mark.process
def test_ctrl_c_is_killed(client: Any, uri: str, tmp_path: Path) -> None:
    """The points of a stopped process are there, and it stands as killed."""
    script(INTERRUPTED, tmp_path, uri, check=False)
    (folder,) = (tmp_path / "runs").iterdir()
    found = the_run(client, folder.name)

    assert (found.info.status, found.data.metrics) == ("KILLED", {"loss": 0.5})


@pytest.mark.process
def test_a_killed_run_is_completed_by_an_export(client: Any, uri: str, tmp_path: Path) -> None:
    """The run that its sink began is found, gets the rest, and stands as failed."""
    script(KILLED, tmp_path, uri, check=False)
    (folder,) = (tmp_path / "runs").iterdir()
    begun = the_run(client, folder.name)
    export_run(folder, MLflowSink(uri))
    found = the_run(client, folder.name)
    history = client.get_metric_history(found.info.run_id, "loss")

    assert (begun.info.status, found.info.status) == ("RUNNING", "FAILED")
    assert found.info.run_id == begun.info.run_id
    assert sorted(one.value for one in history) == [float(step) for step in range(500)]


def test_the_users_own_run_stays_theirs(client: Any, uri: str, tmp_path: Path) -> None:
    """Points go into the active run, which is neither ended nor renamed, nor are its params."""
    import mlflow

    mlflow.set_tracking_uri(uri)
    try:
        with mlflow.start_run(run_name="mine") as mine:
            mlflow.log_param("lr", "theirs")
            params = {"lr": 0.1, "width": 8}
            sinks = [MLflowSink()]
            with soma.track_run("ours", params=params, root=tmp_path, sinks=sinks) as run:
                run.log("loss", 0.5)
            assert mlflow.active_run().info.run_id == mine.info.run_id
            found = client.get_run(mine.info.run_id)
    finally:
        mlflow.set_tracking_uri(None)

    assert (found.info.status, found.info.run_name) == ("RUNNING", "mine")
    assert found.data.metrics == {"loss": 0.5}
    assert found.data.params == {"lr": "theirs", "width": "8"}


def test_thousands_of_metrics(client: Any, uri: str, tmp_path: Path) -> None:
    """More names than one call takes arrive, with more params than one call takes."""
    params = {f"p{number}": number for number in range(150)}
    with soma.track_run("many", params=params, root=tmp_path, sinks=[MLflowSink(uri)]) as run:
        for number in range(2500):
            run.log(f"metric {number}", number)
    found = the_run(client, run.id)

    assert found.data.metrics == {f"metric {number}": number for number in range(2500)}
    assert len(found.data.params) == 150


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    """The sink is told of; the run completes."""
    sinks = [MLflowSink(f"nonsense://{tmp_path}")]
    with (
        pytest.warns(SinkWarning, match="MLflowSink"),
        soma.track_run("test", root=tmp_path, sinks=sinks) as run,
    ):
        run.log("loss", 0.5)

    assert RunRecord(run.dir).state == "completed"

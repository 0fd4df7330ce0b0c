"""The example of a flow: an agent that repairs a network by what its audit says."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import soma

EXAMPLE = Path(__file__).parents[1] / "examples" / "tune_digits.py"
NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "tune_digits.ipynb"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the runs of one run of the example, which nothing was wrong with."""
    root = tmp_path_factory.mktemp("tune")
    command = [sys.executable, "-W", "error", str(EXAMPLE), "--root", str(root)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Look next: soma report" in shown
    return root


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_agent_repairs_a_dead_layer(root: Path) -> None:
    """The first training has a dead layer, which the agent reads of; the last one has none."""
    (view,) = [one for one in soma.runs(root) if one.kind == "flow"]
    calls = [one for one in view.conversation() if one.kind == "call" and one.node == "tune"]
    found = [one.text for one in calls if one.who == "health"]
    reached = [json.loads(one.text)["accuracy"] for one in calls if one.who == "train"]

    assert "error[DEAD]: nothing comes out of it" in found[0]
    assert found[-1].endswith("no findings")
    assert reached[0] < 0.3
    assert reached[-1] > 0.9


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_health_that_it_read_is_that_of_the_training(root: Path) -> None:
    """What the tool told the model is what the run of the training says of itself."""
    view = next(one for one in soma.runs(root) if one.kind == "flow")
    read = next(one for one in view.conversation() if one.who == "health")
    assert read.call is not None
    training = soma.RunView(root / "runs" / json.loads(read.call.arguments)["run"])

    assert read.text == training.verdict().pretty()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(300)
def test_the_notebook_runs_as_it_is_kept() -> None:
    """Run again, its cells print what stands in the file; only ids of runs differ."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    kept = nbformat.read(NOTEBOOK, as_version=4)
    again = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(again, timeout=250, kernel_name="python3", resources=where).execute()

    assert printed(again) == printed(kept)


def printed(notebook: Any) -> list[str]:
    """Return what cells printed, without ids of runs."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    texts = [one["text"] for one in outputs if one.get("name") == "stdout"]
    return [re.sub(r"\d{8}-\d{6}-\w{8}", "RUN", text) for text in texts]

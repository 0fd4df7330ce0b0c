"""`soma export RUN --to TOOL`, as a user types it."""

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import soma
from soma.cli import main
from tests.tracking.filters import script

# An import that is blocked as if the library were not there.
WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from soma.cli import main
main(sys.argv[2:])
"""
LIGHT = """
import sys
from soma.cli import main
main(sys.argv[1:], standalone_mode=False)
print("torch" in sys.modules, file=sys.stderr)
"""


def command(*arguments: str | Path) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a folder with two runs."""
    for name in ("older", "newer"):
        with soma.track_run(name, root=tmp_path) as run:
            run.log("loss", 0.5)
            run.log("loss", 0.25)
    return tmp_path


def test_one_run(root: Path) -> None:
    """A line says what went where, and the file is there."""
    result = command("export", "newer", "--to", "csv", "--out", root / "out", "--root", root)
    (path,) = (root / "out").iterdir()

    assert result.exit_code == 0
    assert result.output == f"{path.stem}\t2\t{path}\n"
    assert pl.read_csv(path)["value"].to_list() == [0.5, 0.25]


def test_all_runs_as_json(root: Path) -> None:
    """Each is told of, and all of them are one frame to read."""
    out = root / "out"
    result = command("export", "--all", "--to", "parquet", "--out", out, "--root", root, "--json")
    told = json.loads(result.output)

    assert [one["points"] for one in told["exported"]] == [2, 2]
    assert told["failed"] == []
    assert {one["run"] for one in told["exported"]} == {view.id for view in soma.runs(root)}
    assert pl.read_parquet(out)["run"].n_unique() == 2


def test_one_that_fails_stops_no_other(root: Path) -> None:
    """It is told of on its own, and the command exits with 1."""
    out, newest = root / "out", soma.runs(root)[0].id
    (out / f"{newest}.csv").mkdir(parents=True)  # in the way
    arguments = ("export", "--all", "--to", "csv", "--out", out, "--root", root)
    told = json.loads(command(*arguments, "--json").stdout)

    assert [one["run"] for one in told["failed"]] == [newest]
    assert len(told["exported"]) == 1
    assert command(*arguments).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--to", "csv"), "name the runs to export, or say --all"),
        (("last", "--all", "--to", "csv"), "name the runs to export, or say --all"),
        (("last", "--to", "csv", "--uri", "x"), "--uri is for mlflow"),
        (("last", "--to", "mlflow", "--out", "x"), "--uri is for mlflow"),
        (("nothing", "--to", "csv"), "there is no run nothing"),
        (("last",), "Missing option '--to'"),
        (("last", "--to", "excel"), "'excel' is not one of"),
    ],
)
def test_what_cannot_be_asked(arguments: tuple[str, ...], reason: str, root: Path) -> None:
    """One line says what is wrong, and nothing is written."""
    result = command("export", *arguments, "--root", root)

    assert result.exit_code == 2
    assert reason in result.output


@pytest.mark.process
@pytest.mark.parametrize(
    ("tool", "library", "extra"),
    [
        ("tensorboard", "tensorboard", "tensorboard"),
        ("mlflow", "mlflow", "mlflow"),
        ("wandb", "wandb", "wandb"),
        ("parquet", "pyarrow", "frames"),
    ],
)
def test_a_missing_library_names_its_extra(tool: str, library: str, extra: str, root: Path) -> None:
    """The reason ends with the command that installs it."""
    done = script(WITHOUT, library, "export", "last", "--to", tool, "--root", root, check=False)

    assert done.returncode == 2
    assert done.stderr.endswith(f"pip install 'soma-graph[{extra}]'\n")


@pytest.mark.process
@pytest.mark.parametrize("tool", ["csv", "parquet", "tensorboard", "wandb"])
def test_no_torch_is_needed(tool: str, root: Path) -> None:
    """An export loads no torch."""
    done = script(LIGHT, "export", "last", "--to", tool, "--out", root / "out", "--root", root)

    assert done.stderr.splitlines()[-1] == "False"

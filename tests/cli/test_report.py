"""`soma report`, as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import soma
from soma.cli import main


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> soma.RunView:
    """Give a run below the current folder."""
    monkeypatch.chdir(tmp_path)
    with soma.track_run("demo") as run:
        run.log("loss", 1.0)
    return soma.RunView(run.dir)


def report(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["report", *arguments])


def test_a_report_is_named_after_its_run(run: soma.RunView) -> None:
    """Without a name it comes into the current folder, and the command says where."""
    result = report("last")

    assert (result.exit_code, result.stderr) == (0, f"wrote {run.id}.html\n")
    assert Path(f"{run.id}.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("options", [[], ["--inline"], ["--static"], ["--plotly"]])
def test_a_report_with_a_name(options: list[str], run: soma.RunView) -> None:
    """It is written where `-o` says, in place of what was there."""
    Path("r.html").write_text("old")
    result = report(str(run.dir), "-o", "r.html", *options)
    text = Path("r.html").read_text("utf-8")

    assert result.exit_code == 0
    assert "<script" not in text if options == ["--static"] else "<script" in text
    assert ("soma-plotly" in text) == (options == ["--plotly"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["last", "--plotly", "--static"], "leave one"),
        (["nothing"], "there is no run nothing"),
        (["last", "-o", "none/r.html"], "cannot be written: No such file or directory"),
        (["last", "-o", "."], "cannot be written"),
    ],
)
def test_a_report_that_is_refused(arguments: list[str], said: str, run: soma.RunView) -> None:
    """The command ends with 2 and a line that says why, and leaves no file."""
    result = report(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert [path.name for path in Path().iterdir()] == [".soma"]


def test_a_report_is_opened(run: soma.RunView) -> None:
    """`--open` hands the address of the file to the browser."""
    browser = Path("browser")
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen('seen', 'w').write(sys.argv[1])\n")
    browser.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-m", "soma", "report", "last", "-o", "r.html", "--open"],
        env={"BROWSER": f"{browser.absolute()} %s", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
    )

    assert done.returncode == 0
    assert Path("seen").read_text() == Path("r.html").absolute().as_uri()


def test_several_runs(run: soma.RunView) -> None:
    """Several names make one page, in the order in which they were typed; twice is once."""
    with soma.track_run("other"):
        pass
    result = report("demo", "other", run.id)
    text = Path("runs.html").read_text("utf-8")

    assert (result.exit_code, result.stderr) == (0, "wrote runs.html\n")
    assert "2 runs · soma report" in text
    assert text.index(">demo<") < text.index(">other<")


def test_all_runs_with_a_tag(run: soma.RunView) -> None:
    """`--tag` takes the trials of a study, also a single one, and leaves the rest."""
    with soma.track_run("digits #0", tags=["digits"]):
        pass
    result = report("--tag", "digits", "-o", "r.html")

    assert result.exit_code == 0
    assert "digits · soma report" in Path("r.html").read_text("utf-8")
    assert ">demo<" not in Path("r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "type one RUN or several, or --tag"),
        (["last", "--tag", "digits"], "type one RUN or several, or --tag"),
        (["--tag", "digits"], "no run below .soma has the tag digits"),
        (["last", "nothing"], "there is no run nothing"),
    ],
)
def test_several_that_are_refused(arguments: list[str], said: str, run: soma.RunView) -> None:
    """The command ends with 2 and a line that says what to type."""
    result = report(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr

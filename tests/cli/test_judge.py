"""`soma judge`, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soma import RunView
from soma.cli import main
from tests.viz.audits_made import audited, chain, grouped, write_flags
from tests.viz.runs_made import logged


def judge(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["judge", *map(str, arguments)])


@pytest.fixture
def sick(tmp_path: Path) -> RunView:
    """Give a run with dead channels, and two groups that are alike to 0.9."""
    return audited(tmp_path, grouped(chain(3, dead=3), 0.9, ("audio", "text")))


def test_a_sick_run(sick: RunView) -> None:
    """The findings are told like a compiler's messages, and the command ends with 1."""
    result = judge(sick.dir)

    assert result.exit_code == 1
    assert result.stdout == f"{sick.verdict().pretty()}\n"
    assert "warning[DEAD_CHANNELS(3)]" in result.stdout


def test_a_healthy_run(tmp_path: Path) -> None:
    """It ends with 0."""
    result = judge(audited(tmp_path, chain(3)).dir)

    assert result.exit_code == 0
    assert "no findings" in result.stdout


def test_an_earlier_audit(sick: RunView) -> None:
    """Of several audits the last is judged, and it says how to see the others."""
    folder = sick.dir / "diagnostics"
    (folder / "audit-2.jsonl").write_bytes((folder / "audit.jsonl").read_bytes())

    assert "last of 2 audits; `--audit 1`" in judge(sick.dir).stderr
    assert judge(sick.dir, "--audit", 1).stderr == ""
    assert "has no audit 3" in judge(sick.dir, "--audit", 3).stderr


def test_other_thresholds(sick: RunView) -> None:
    """A line that is moved finds more, as often as the option is given."""
    result = judge(sick.dir, "--threshold", "leakage=0.8", "--threshold", "dead_samples=1e6",
                   "--plain")  # fmt: skip

    assert [line.split("\t")[:4] for line in result.stdout.splitlines()] == [
        ["net/layers.0", "LEAKAGE", "0", "likely"]
    ]


def test_the_lines_of_the_audit(sick: RunView) -> None:
    """Without the option a run is judged as its audit judged it."""
    measured = sick.measurements()
    assert measured
    write_flags(sick.dir, measured, leakage=0.8)

    assert "LEAKAGE" in judge(sick.dir, "--plain").stdout


def test_json(sick: RunView) -> None:
    """A program reads steps, findings and the numbers of each module."""
    result = judge(sick.dir, "--json")
    data = json.loads(result.stdout)

    assert result.exit_code == 1
    assert (data["run"], data["steps"], data["healthy"]) == (sick.id, 12, False)
    assert data["findings"][0]["flag"] == "DEAD_CHANNELS(3)"
    assert data["findings"][0]["channels"] == [0, 1, 2]
    assert [row["id"] for row in data["modules"]][:2] == ["net/layers.0", "net/layers.1"]
    assert data["modules"][0]["metrics"]["act_std"] == 0.4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--threshold", "leakge=0.9"], "Did you mean `leakage`?"),
        (["--threshold", "leakage"], "NAME=VALUE, as leakage=0.9, is wanted"),
        (["--threshold", "leakage=x"], "a number behind the `=` is wanted"),
        (["--threshold", "leakage=-1"], "a number from 0 up is wanted"),
    ],
)
def test_a_threshold_that_is_refused(options: list[str], said: str, sick: RunView) -> None:
    """The command ends with 2 and one line that says why."""
    result = judge(sick.dir, *options)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_run_without_audit(tmp_path: Path) -> None:
    """It cannot be judged, and the line says what to do."""
    result = judge(logged(tmp_path, loss=[1.0]).dir)

    assert result.exit_code == 2
    assert "g.gradient_audit()" in result.stderr


def test_it_needs_no_torch(sick: RunView) -> None:
    """Where torch cannot be imported, the verdict is the same."""
    code = (
        "import sys\nsys.modules.update(dict.fromkeys(('torch', 'numpy', 'plotly')))\n"
        "from soma.cli import main\nmain(['judge', sys.argv[1]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(sick.dir)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == judge(sick.dir).stdout

"""`soma explain`, as a user types it."""

import json

from click.testing import CliRunner

from soma.cli import main
from soma.health import explain, flags


def run(*arguments: str) -> tuple[int, str]:
    """Run a command and return its exit code and what it printed."""
    result = CliRunner().invoke(main, ["explain", *arguments])
    return result.exit_code, result.output


def test_a_flag_is_explained() -> None:
    """The text of `soma.explain`, line by line."""
    assert run("VANISHING") == (0, f"{explain('VANISHING')}\n")


def test_as_json() -> None:
    """Defaults as numbers by the names of their thresholds."""
    code, output = run("leakage", "--json")

    assert (code, json.loads(output)["thresholds"]) == (0, {"leakage": 0.95})


def test_without_a_flag_all_are_listed() -> None:
    """One line a flag."""
    lines = run("--plain")[1].splitlines()

    assert [line.split("\t")[0] for line in lines] == list(flags())


def test_an_unknown_flag_is_refused() -> None:
    """With exit code 2 and the nearest name."""
    code, output = run("VANISHNG")

    assert code == 2
    assert "Did you mean `VANISHING`?" in output

"""`soma compare`, as a user types it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from soma.cli import main
from soma.health import Measurements
from tests.viz.audits_made import audited, chain, grouped, write_flags


def compare(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def without_layer(measured: Measurements) -> Measurements:
    """Return an audit that did not look at the first layer."""
    del measured.units["net/layers.0"], measured.series["net/layers.0"]
    measured.channels.clear()
    return measured


@pytest.mark.parametrize(
    ("before", "after", "kinds", "code"),
    [
        (chain(3), chain(3), [], 0),
        (chain(3), chain(3, dead=2), ["new"], 1),
        (chain(3, dead=2), chain(3, dead=3), ["worse"], 1),
        (chain(3, dead=3), chain(3, dead=2), ["better"], 0),
        (chain(3, dead=2), chain(3, dead=2), ["same"], 0),
        (chain(3, dead=2), chain(3), ["gone"], 0),
        (chain(3, dead=2), without_layer(chain(3)), ["not seen"], 0),
        (chain(3, dead=2), grouped(chain(3), 0.99, ("a", "b")), ["new", "gone"], 1),
    ],
    ids=["healthy", "new", "worse", "better", "same", "gone", "not seen", "both"],
)
def test_what_became_of_health(
    before: Measurements, after: Measurements, kinds: list[str], code: int, tmp_path: Path
) -> None:
    """Each finding has a kind; the command ends with 1 if one is new or worse."""
    runs = [audited(tmp_path, before).dir, audited(tmp_path, after).dir]
    result = compare(*runs, "--json")

    assert [change["kind"] for change in json.loads(result.stdout)["changes"]] == kinds
    assert result.exit_code == code


def test_the_lines_of_the_second_run(tmp_path: Path) -> None:
    """Both runs are judged by the thresholds that the second one was audited with."""
    measured = grouped(chain(3), 0.9, ("a", "b"))
    runs = [audited(tmp_path, measured).dir, audited(tmp_path, measured).dir]
    write_flags(runs[1], measured, leakage=0.8)

    (change,) = json.loads(compare(*runs, "--json").stdout)["changes"]
    assert (change["kind"], change["before"]) == ("same", "LEAKAGE")


def test_the_answer_in_lines(tmp_path: Path) -> None:
    """A line says what, where, both flags, since when and why."""
    runs = [audited(tmp_path, chain(3, dead=2)).dir, audited(tmp_path, chain(3, dead=3)).dir]
    (line,) = compare(*runs).stdout.splitlines()

    assert line.split("\t")[:5] == [
        *("worse", "net/layers.0", "DEAD_CHANNELS(2)", "DEAD_CHANNELS(3)", "0"),
    ]


def test_both_by_the_same_lines(tmp_path: Path) -> None:
    """A threshold holds for both runs."""
    runs = [audited(tmp_path, grouped(chain(3), 0.9, ("a", "b"))).dir for _ in range(2)]
    result = compare(*runs, "--threshold", "leakage=0.8", "--plain")

    assert (result.exit_code, result.stdout.split("\t")[0]) == (0, "same")


def test_healthy_runs(tmp_path: Path) -> None:
    """Nothing to tell is told."""
    folder = audited(tmp_path, chain(3)).dir

    assert compare(folder, folder).stdout == "no findings in either run\n"


@pytest.mark.parametrize("options", [["--threshold", "x=1"], ["--threshold", "leakage"]])
def test_refused(options: list[str], tmp_path: Path) -> None:
    """A threshold that is none ends the command with 2."""
    folder = audited(tmp_path, chain(3)).dir

    assert compare(folder, folder, *options).exit_code == 2

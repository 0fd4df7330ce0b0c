"""`soma runs`, `soma graph` and `soma check`, as a user types them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import soma
from soma import Filter, Graph
from soma.cli import main

HOSTILE = "\x1b[2J<b>\r\nname"


class Double(Filter):
    """Doubles."""

    def forward(self, x: float, state: object) -> float:
        return 2 * x


def command(*arguments: str | Path) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a folder with one run of a graph, with a hostile name, and an older one without."""
    with soma.track_run("plain", root=tmp_path) as run:
        run.log("loss", 1.0)
    with Graph.somatize(Double() >> Double(), cache=None).track_run(
        HOSTILE,
        kind="fit",
        tags=("demo",),
        params={"rate": 0.0158113883, "width": 32},
        root=tmp_path,
    ) as run:
        pass
    return tmp_path


def ids(root: Path) -> list[str]:
    """Return the ids of the runs, the newest first."""
    return [view.id for view in soma.runs(root)]


def test_runs_as_json(root: Path) -> None:
    """Each run is an object with what it was started as and how it stands."""
    result = command("runs", "--json", "--root", root)
    newest = json.loads(result.output)[0]

    assert result.exit_code == 0
    assert (newest["id"], newest["state"], newest["tags"]) == (ids(root)[0], "completed", ["demo"])
    assert newest["dir"] == str(root / "runs" / newest["id"])
    assert newest["params"] == {"rate": 0.0158113883, "width": 32}


def test_runs_as_lines(root: Path) -> None:
    """A line each, parted by tabs, in which no name moves the cursor."""
    lines = command("runs", "--plain", "--root", root).output.splitlines()

    assert [line.split("\t")[0] for line in lines] == ["completed", "completed"]
    assert lines[0].split("\t")[1] == "<b>name"
    assert lines[0].split("\t")[5] == "rate=0.01581 width=32"
    assert all(line.replace("\t", "").isprintable() for line in lines)


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("width", "words", "gone"),
    [
        (60, [], "started"),
        (80, ["completed", "params"], "started"),
        (160, ["started", "kind"], "…"),
    ],
)
def test_a_narrow_table_keeps_the_ids(root: Path, width: int, words: list[str], gone: str) -> None:
    """An id is there to be typed again; the kind, and the time that it tells, give way."""
    ours, theirs = os.openpty()
    subprocess.run(
        [sys.executable, "-m", "soma", "runs", "--root", str(root)],
        stdout=theirs,
        check=True,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": str(width)},
    )
    os.close(theirs)
    output = os.read(ours, 100_000).decode()
    os.close(ours)

    assert all(word in output for word in [*ids(root), *words])
    assert gone not in output


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments", [["runs"], ["graph", "last"], ["graph", "last", "--format", "svg"]]
)
def test_an_old_code_page_stops_no_command(tmp_path: Path, arguments: list[str]) -> None:
    """Signs that it lacks are spelled out in texts; a drawing for other tools is UTF-8."""
    with Graph.somatize(Double() >> Double(), cache=None).track_run("日本 ✓", root=tmp_path):
        pass
    done = subprocess.run(
        [sys.executable, "-m", "soma", *arguments, "--root", str(tmp_path)],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    )
    assert done.stdout.decode("utf-8" if "svg" in arguments else "cp1252")


def test_a_broken_run_is_listed(root: Path) -> None:
    """It stands among the others as unreadable, and the command succeeds."""
    (root / "runs" / ids(root)[0] / "manifest.json").write_text("{")
    result = command("runs", "--root", root)

    assert result.exit_code == 0
    assert result.output.count("unreadable") == 1


def test_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default folder need not be there; one that is named does."""
    monkeypatch.chdir(tmp_path)

    assert command("runs").output == "no runs below .soma\n"
    assert command("runs", "--root", "none").exit_code == 2


@pytest.mark.parametrize(
    ("form", "opening"),
    [("text", "graph\n"), ("svg", "<svg"), ("mermaid", "flowchart"), ("dot", "digraph")],
)
def test_a_graph_in_each_form(form: str, opening: str, root: Path) -> None:
    """It is printed, without a control character."""
    result = command("graph", "last", "--format", form, "--root", root)

    assert result.exit_code == 0
    assert result.output.startswith(opening)
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("name", "opening"),
    [("g.svg", "<svg"), ("g.mmd", "flowchart"), ("g.gv", "digraph"), ("g.txt", "graph"), ("g", "")],
)
def test_a_graph_into_a_file(name: str, opening: str, root: Path) -> None:
    """The suffix says the form."""
    result = command("graph", "last", "-o", root / name, "--root", root)

    assert (result.exit_code, result.stdout) == (0, "")
    assert (root / name).read_text().startswith(opening)


def test_a_picture_that_is_not_drawn(root: Path) -> None:
    """A suffix of another format is refused, unless the form is given; nothing is written."""
    into = ("graph", "last", "--root", root, "-o", root / "g.PNG")
    refused = command(*into)

    assert (refused.exit_code, (root / "g.PNG").exists()) == (2, False)
    assert "use one of .txt, .svg, .mmd, .dot, .gv, or --format." in refused.stderr
    assert command(*into, "--format", "svg").exit_code == 0


def test_a_run_is_named_in_four_ways(root: Path) -> None:
    """By id, by the beginning of one, as `last`, and by path."""
    newest = ids(root)[0]
    for name in (newest, newest[:-1], "last", str(root / "runs" / newest)):
        assert command("graph", name, "--root", root).exit_code == 0


@pytest.mark.parametrize("name", ["none", "", "2", "../runs", "/none", "a\0b", "\x1b[2J"])
@pytest.mark.parametrize("verb", ["graph", "check"])
def test_what_is_no_run(verb: str, name: str, root: Path) -> None:
    """One line on stderr and exit code 2, also where two runs begin so."""
    result = command(verb, name, "--root", root)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "\x1b" not in result.stderr
    assert "Traceback" not in result.output


def test_an_id_that_leads_elsewhere(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A link out of the folder of runs is not followed."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "manifest.json").write_text("{")
    (root / "runs" / "linked").symlink_to(elsewhere)
    result = command("check", "linked", "--root", root)

    assert result.exit_code == 2
    assert "leads out" in result.stderr


@pytest.mark.parametrize("arguments", [("--node", "double"), ("--node", HOSTILE)])
def test_an_inside_that_was_not_recorded(arguments: tuple[str, str], root: Path) -> None:
    """Exit code 2, and one line that says what is recorded."""
    result = command("graph", "last", "--root", root, *arguments)

    assert result.exit_code == 2
    assert "it holds no module's inside" in result.stderr
    assert result.stderr[:-1].isprintable()


def test_a_file_that_cannot_be_written(root: Path) -> None:
    """Exit code 2 and one line."""
    result = command("graph", "last", "-o", root / "none" / "g.svg", "--root", root)

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")


def test_check_of_a_whole_run(root: Path) -> None:
    """Exit code 0."""
    result = command("check", "last", "--root", root)

    assert (result.exit_code, result.output) == (0, "nothing is wrong\n")


def test_check_of_a_damaged_run(root: Path) -> None:
    """Exit code 1, and a line for each thing that is wrong."""
    newest = ids(root)[0]
    (root / "runs" / newest / "graph.json").write_text("{")
    result = command("check", newest, "--json", "--root", root)
    found = json.loads(result.output)

    assert result.exit_code == 1
    assert found["run"] == newest
    assert len(found["problems"]) == 1


def test_help_is_light() -> None:
    """`soma graph --help` loads neither viz nor what reads runs."""
    code = (
        "import sys\nfrom soma.cli import main\n"
        "main(['graph', '--help'], standalone_mode=False)\n"
        "assert not {'numpy', 'torch', 'rich', 'jinja2', 'soma.viz', 'soma.tracking'}"
        " & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_among_the_runs(root: Path) -> None:
    """What is no directory is no run."""
    os.mkfifo(root / "runs" / "pipe")

    assert len(json.loads(command("runs", "--json", "--root", root).output)) == 2


@pytest.mark.parametrize("name", ["x" * 10_000, "x/" * 10_000, "./" + "x" * 300])
def test_a_name_that_no_file_has(name: str, root: Path) -> None:
    """Exit code 2 and no traceback, for a run as for a root."""
    for arguments in (("graph", name), ("check", name, "--root", name), ("runs", "--root", name)):
        result = command(*arguments)

        assert result.exit_code == 2
        assert isinstance(result.exception, SystemExit)


def test_last_is_a_run_that_can_be_opened(root: Path, tmp_path_factory: Any) -> None:
    """A link to elsewhere is passed over, however new it is."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "file").touch()
    os.utime(elsewhere, (2**32, 2**32))
    (root / "runs" / "linked").symlink_to(elsewhere)

    assert ids(root)[0] == "linked"
    assert command("check", "last", "--root", root).output == "nothing is wrong\n"


def test_a_run_is_found_by_its_name(root: Path) -> None:
    """The newest of that name is meant."""
    with soma.track_run("plain", root=root) as newer:
        pass

    assert json.loads(command("check", "plain", "--root", root, "--json").stdout)["run"] == newer.id


def test_a_misspelt_name_is_told_the_right_one(root: Path, tmp_path_factory: Any) -> None:
    """Names are suggested as ids are; where nothing ran yet, that is what is said."""
    empty = tmp_path_factory.mktemp("empty")

    assert "Did you mean `plain`?" in command("graph", "plane", "--root", root).output
    assert f"there are no runs below {empty}" in command("graph", "last", "--root", empty).output

"""`soma cache`, as a user types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import soma
from soma import Filter, Graph
from soma.cache import FileStore
from soma.cli import main
from soma.files import TEMPORARY


class Spread(Filter):
    """Gives an answer that is too large to stand in its record."""

    def forward(self, x: int, state: object) -> list[float]:
        return [x + self.by + number / 7 for number in range(5000)]


def soma_cache(*arguments: str | Path) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, ["cache", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a cache with two answers of one node, of which it says why it ran."""
    for by in (1, 2):
        Graph.somatize(Spread(by=by), cache=tmp_path).forward(0)
    return tmp_path


def test_stats_as_json(folder: Path) -> None:
    """Numbers as numbers, and where the cache is."""
    result = soma_cache("stats", "--json", "--cache", folder)
    found = json.loads(result.output)

    assert result.exit_code == 0
    assert found == {
        "place": str(folder),
        "entries": 2,
        "states": 0,
        "outputs": 2,
        "blobs": 2,
        "bytes": sum_of_files(folder),
        "pinned": 0,
    }


def sum_of_files(folder: Path) -> int:
    """Return the bytes of the files of a cache."""
    return sum(entry.size for entry in FileStore(folder).entries())


def test_stats_as_lines(folder: Path) -> None:
    """A line each, name and exact number, parted by a tab."""
    lines = soma_cache("stats", "--plain", "--cache", folder).output.splitlines()

    assert lines[:2] == [f"place\t{folder}", "entries\t2"]
    assert lines[5] == f"bytes\t{sum_of_files(folder)}"


def test_the_default_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--cache` it is the one that graphs use; it need not be there yet."""
    monkeypatch.setenv("SOMA_CACHE_DIR", str(folder))
    assert "entries\t2" in soma_cache("stats").output

    monkeypatch.setenv("SOMA_CACHE_DIR", str(folder / "later"))
    assert "entries\t0" in soma_cache("stats").output


def test_gc_tells_what_went(folder: Path) -> None:
    """Files and bytes that went, and what is left."""
    before = sum_of_files(folder)
    result = soma_cache("gc", "--max-size", "50K", "--json", "--cache", folder)
    done = json.loads(result.output)

    assert result.exit_code == 0
    assert done["removed_files"] > 0
    assert done["left_bytes"] == sum_of_files(folder) == before - done["removed_bytes"]


@pytest.mark.parametrize("size", ["", "many", "-1"])
def test_gc_wants_a_size(size: str, folder: Path) -> None:
    """Exit code 2, and what a size looks like."""
    result = soma_cache("gc", "--max-size", size, "--cache", folder)

    assert result.exit_code == 2
    assert "'20G'" in result.output


def test_verify_of_a_whole_cache(folder: Path) -> None:
    """Exit code 0."""
    result = soma_cache("verify", "--cache", folder)

    assert (result.exit_code, result.output) == (0, "nothing is damaged\n")


def test_verify_names_what_is_damaged(folder: Path) -> None:
    """Exit code 1, and each damaged file with the reason."""
    path = next(path for path in (folder / "blobs").rglob("*") if path.is_file())
    path.write_bytes(b"torn")
    result = soma_cache("verify", "--plain", "--cache", folder)

    assert result.exit_code == 1
    assert result.output == f"blob\t{path.name}\tits bytes are not the ones that were written\n"


def test_verify_as_json(folder: Path) -> None:
    """A list, empty where nothing is damaged."""
    assert json.loads(soma_cache("verify", "--json", "--cache", folder).output) == {"damaged": []}


@pytest.mark.process
def test_verify_after_a_kill(tmp_path: Path) -> None:
    """What a process has left half-written when it was killed is no damage."""
    script = (
        "import os, signal, sys\nfrom soma.cache import FileStore\n"
        "from soma.testing._store_suite import commit\n"
        "def before(call):\n"
        "    if call == 'replace':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "commit(FileStore(sys.argv[1]), 1)\n"
        "commit(FileStore(sys.argv[1], before=before), 2)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)

    assert done.returncode != 0
    assert list(tmp_path.rglob(f"{TEMPORARY}*"))
    assert soma_cache("verify", "--cache", tmp_path).exit_code == 0


def test_a_pinned_entry_outlives_a_collection(folder: Path) -> None:
    """`why --json` tells the key, `pin` keeps it, `unpin` lets it go."""
    key = json.loads(soma_cache("why", "spread", "--json", "--cache", folder).output)["key"]
    assert soma_cache("pin", key, "--cache", folder).output == f"pinned\t{key}\n"
    soma_cache("gc", "--max-size", "0", "--cache", folder)
    assert "entries\t1" in soma_cache("stats", "--cache", folder).output

    assert soma_cache("unpin", key, "--cache", folder).exit_code == 0
    soma_cache("gc", "--max-size", "0", "--cache", folder)
    assert "entries\t0" in soma_cache("stats", "--cache", folder).output


@pytest.mark.parametrize("key", ["0" * 64, "spread"])
def test_what_cannot_be_pinned(key: str, folder: Path) -> None:
    """Exit code 2, and the key that was given."""
    result = soma_cache("pin", key, "--cache", folder)

    assert result.exit_code == 2
    assert key in result.stderr


def test_why_tells_what_changed(folder: Path) -> None:
    """The line that `soma.why` gave in the process that ran the node."""
    result = soma_cache("why", "spread", "--cache", folder)

    assert (result.exit_code, result.output) == (0, "`spread` ran: `by` changed from 1 to 2\n")


def test_why_is_the_same_line_in_the_process(tmp_path: Path) -> None:
    """`soma.why` and the command agree."""
    g = Graph.somatize(Spread(by=1), cache=tmp_path)
    g.forward(0)

    assert soma_cache("why", "spread", "--cache", tmp_path).output == soma.why(g, "spread") + "\n"


def test_why_of_an_unknown_node(folder: Path) -> None:
    """Exit code 1: nothing was found."""
    result = soma_cache("why", "spraed", "--cache", folder)

    assert result.exit_code == 1
    assert result.output == "nothing is stored of a node `spraed`, or it is gone\n"


def test_control_characters_are_not_printed(tmp_path: Path) -> None:
    """A value that holds an escape sequence cannot move the cursor."""
    for by in ("\x1b[2Ja", "b"):
        g = Graph.somatize(Shown(by=by), cache=tmp_path)
        g.forward(0)
    output = soma_cache("why", "shown", "--cache", tmp_path).output

    assert output[:-1].isprintable()
    assert "\x1b" not in soma_cache("why", "\x1b[2Jnode", "--cache", tmp_path).output


class Shown(Filter):
    """Holds a text."""

    def forward(self, x: int, state: object) -> int:
        return x


@pytest.mark.parametrize("command", ["stats", "verify"])
def test_a_cache_that_cannot_be_opened(command: str, tmp_path: Path) -> None:
    """One line on stderr and exit code 2: a missing folder, a file, an unknown kind of URL."""
    file = tmp_path / "file"
    file.touch()
    for place in (tmp_path / "none", file, "ftp://host/cache"):
        result = soma_cache(command, "--cache", place)
        assert result.exit_code == 2
        assert (result.stdout, result.stderr.count("\n")) == ("", 1)
        assert result.stderr.startswith("Error: ")


def test_a_cache_of_a_later_version(tmp_path: Path) -> None:
    """It says so in one line, and what to do."""
    (tmp_path / "format.json").write_text('{"format": 99}')
    result = soma_cache("stats", "--cache", tmp_path)

    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "Update soma" in result.stderr


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize("color", [True, False])
def test_a_person_gets_a_table(color: bool, folder: Path) -> None:
    """On a terminal there is a frame; `NO_COLOR` takes colours and bold away."""
    ours, theirs = os.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    subprocess.run(
        [sys.executable, "-m", "soma", "cache", "stats", "--cache", str(folder)],
        stdout=theirs,
        check=True,
        env=environment | {"TERM": "xterm-256color"} | ({} if color else {"NO_COLOR": "1"}),
    )
    os.close(theirs)
    output = os.read(ours, 100_000).decode()
    os.close(ours)

    assert "│" in output
    assert ("\x1b" in output) == color


def test_help_is_light() -> None:
    """`soma cache --help` and `soma cache gc --help` load neither the cache nor rich."""
    code = (
        "import sys\nfrom soma.cli import main\n"
        "main(['cache', 'gc', '--help'], standalone_mode=False)\n"
        "assert not {'numpy', 'torch', 'rich', 'blake3', 'soma.cache'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

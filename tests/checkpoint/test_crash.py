"""A save that dies or fails leaves the old file or the new one, and never half of one."""

import errno
import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from soma import Graph
from soma.graph._saving import save
from tests.checkpoint.filters import Scale

CLASS = """
import os, sys
from soma import Filter, Graph
from soma.graph._saving import save
class Big(Filter):
    def forward(self, x, state): return self.number
"""
KILLED = """
from mine import *
seen = []
def before(call):
    seen.append(call)
    if len(seen) == int(sys.argv[1]):
        os._exit(9)
g = Graph.somatize(Big(number=2, data=bytes(5_000_000)))
save(g, "g.soma", optimizer=False, random=False, extra=None, before=before)
print(len(seen))
"""
SAVING = """
from mine import *
g = Graph.somatize(Big(number=2, data=os.urandom(3_000_000)))
print("go", flush=True)
while True: g.save("g.soma")
"""
LOADING = "from mine import *; print(Graph.load('g.soma').forward(0))"


def child(folder: Path, code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run code in a process of its own."""
    code = f"import sys; sys.path.insert(0, '.'); {code.strip()}"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a class and an old bundle."""
    (tmp_path / "mine.py").write_text(CLASS)
    done = child(tmp_path, "from mine import *; Graph.somatize(Big(number=1)).save('g.soma')")
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.slow
@pytest.mark.process
def test_a_save_that_dies_at_any_call_leaves_old_or_new(folder: Path) -> None:
    """Before the rename the old graph is there, afterwards the new one."""
    old, number, found = (folder / "g.soma").read_bytes(), 0, []
    while (died := child(folder, KILLED, str(number := number + 1))).returncode == 9:
        is_old = (folder / "g.soma").read_bytes() == old
        found.append(is_old)
        assert is_old or child(folder, LOADING).stdout == "2\n"
        (folder / "g.soma").write_bytes(old)
    calls = int(died.stdout)

    assert died.returncode == 0
    assert found == [True] * (calls - 2) + [False] * 2
    assert calls >= 8


@pytest.mark.slow
@pytest.mark.process
def test_a_save_that_is_killed_leaves_a_whole_file(folder: Path) -> None:
    """SIGKILL at any moment of many saves leaves a file that loads."""
    code = f"import sys; sys.path.insert(0, '.'); {SAVING.strip()}"
    chance = random.Random(0)
    for _ in range(6):
        saver = subprocess.Popen(
            [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert saver.stdout is not None
        with saver:
            assert saver.stdout.readline() == "go\n"
            time.sleep(chance.uniform(0, 0.3))
            saver.kill()
        assert child(folder, LOADING).stdout in ("1\n", "2\n")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EMFILE])
def test_a_save_that_fails_at_any_call_leaves_the_old_file(tmp_path: Path, code: int) -> None:
    """The error of the system reaches the caller, and nothing else is left behind."""
    path = tmp_path / "g.soma"
    Graph.somatize(Scale(factor=1)).save(path)
    old, calls = path.read_bytes(), 0

    def before(call: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(code, os.strerror(code))

    while path.read_bytes() == old:
        left = calls = calls + 1
        with suppress(OSError):
            save(
                Graph.somatize(Scale(factor=2)), str(path),
                optimizer=False, random=False, extra=None, before=before,
            )  # fmt: skip
        assert list(tmp_path.iterdir()) == [path]

    assert calls > 5


@pytest.mark.process
def test_a_full_disk_leaves_the_old_file(folder: Path) -> None:
    """A limit on the size of files fails the save as a full disk does."""
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "from mine import *\n"
        "try: Graph.somatize(Big(number=2, data=os.urandom(3_000_000))).save('g.soma')\n"
        "except OSError as error: print(type(error).__name__)"
    )

    assert child(folder, code).stdout == "OSError\n"
    assert child(folder, LOADING).stdout == "1\n"
    assert not list(folder.glob(".tmp-*"))

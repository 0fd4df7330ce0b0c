"""A commit that dies or fails at any of its system calls."""

import errno
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from soma.cache._file_store import FileStore
from soma.cache._upkeep import gc, verify
from soma.files import TEMPORARY
from soma.testing._store_suite import commit, digest_of, heard, key_of, look

# Each child of this process commits numbers 1 and 2 and dies before its n-th system call.
KILLED = """
import os, sys
from soma.cache._file_store import FileStore
from soma.testing._store_suite import commit
for n in range(1, 1000):
    pid = os.fork()
    if pid == 0:
        left = [n]
        def before(call):
            left[0] -= 1
            if not left[0]:
                os._exit(9)
        store = FileStore(f"{sys.argv[1]}/{n}", before=before)
        commit(store, 1)
        commit(store, 2)
        os._exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        print(n)
        break
"""


@pytest.fixture
def wrecks(tmp_path: Path) -> list[Path]:
    """Give the folders that killed processes left: the n-th died at its n-th system call."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [tmp_path / str(n) for n in range(1, int(done.stdout) + 1)]


@pytest.mark.process
def test_a_killed_commit_is_whole_or_missing(wrecks: list[Path]) -> None:
    """After death at any call, each key is a hit with its bytes or a miss, and nothing is torn."""
    seen: Counter[tuple[bool, bool]] = Counter()
    for wreck in wrecks:
        store = FileStore(wreck)
        seen[look(store, 1), look(store, 2)] += 1
        assert verify(store) == []

    assert len(wrecks) > 20
    assert set(seen) == {(False, False), (True, False), (True, True)}


@pytest.mark.process
def test_a_killed_commit_is_taken_up(wrecks: list[Path]) -> None:
    """The next process commits as if nothing had been; `gc` sweeps what was half-written."""
    for wreck in wrecks:
        store = FileStore(wreck)
        commit(store, 1)
        commit(store, 2)
        assert look(store, 1)
        assert look(store, 2)
        orphans = list(wreck.rglob(f"{TEMPORARY}*"))
        for orphan in orphans:
            os.utime(orphan, (0, 0))
        assert gc(store, 10**9).removed == len(orphans) <= 1


def calls_of_a_commit(folder: Path) -> int:
    """Return how many system calls the first commit of a store takes."""
    calls: list[str] = []
    commit(FileStore(folder, before=calls.append), 1)
    return len(calls)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
def test_a_call_that_fails_ends_writing(tmp_path: Path, code: int) -> None:
    """At any call: no exception, one warning, reads go on, no half-written file is left."""
    for at in range(calls_of_a_commit(tmp_path / "count")):
        root = tmp_path / str(at)
        commit(FileStore(root), 9)
        store = FileStore(root, before=failing(at, code))
        with heard() as said:
            for number in range(40):
                commit(store, number)
        assert [os.strerror(code) in text for text in said] == [True]
        assert not store.writable
        assert look(store, 9)
        assert list(root.rglob(f"{TEMPORARY}*")) == []
        assert verify(store) == []


def test_a_file_that_was_swept_is_written_again(tmp_path: Path) -> None:
    """A half-written file that vanishes before it gets its name costs nothing."""
    calls: list[str] = []

    def before(call: str) -> None:
        calls.append(call)
        if calls.count("replace") == 1 and call == "replace":
            next(tmp_path.rglob(f"{TEMPORARY}*")).unlink()

    commit(FileStore(tmp_path), 2)
    gc(FileStore(tmp_path), 0)
    store = FileStore(tmp_path, before=before)
    commit(store, 2)

    assert look(store, 2)
    assert store.writable


def test_a_pointer_that_cannot_be_added_ends_writing(tmp_path: Path) -> None:
    """No exception and one warning; the pointer before it is read."""
    store = FileStore(tmp_path)
    store.put_last(digest_of(1), "a", key_of(1))
    store = FileStore(tmp_path, before=always(errno.ENOSPC))
    with heard() as said:
        store.put_last(digest_of(1), "a", key_of(2))
        store.put_last(digest_of(1), "a", key_of(3))

    assert (len(said), store.writable) == (1, False)
    assert store.get_last(digest_of(1)) == key_of(1)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_a_call_that_may_work_later_is_tried_later(tmp_path: Path, code: int) -> None:
    """Too many open files cost one entry and one warning; the next entry is kept."""
    store = FileStore(tmp_path)
    commit(store, 9)
    store = FileStore(tmp_path, before=always(code))
    with heard() as said:
        commit(store, 1)
        commit(store, 2)
    assert ["did not keep" in text for text in said] == [True]
    assert store.writable

    store._before = None
    commit(store, 1)
    assert look(store, 1)


def failing(at: int, code: int):
    """Return a hook that fails one call, counted from 0."""
    calls: list[str] = []

    def before(call: str) -> None:
        calls.append(call)
        if len(calls) == at + 1:
            raise OSError(code, os.strerror(code))

    return before


def always(code: int):
    """Return a hook that fails every call."""

    def before(call: str) -> None:
        raise OSError(code, os.strerror(code))

    return before

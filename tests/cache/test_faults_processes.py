"""Many processes on one store: forks, a crowd with a checker, and a cap that holds."""

import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from soma.cache._file_store import FileStore
from soma.cache._upkeep import gc, verify
from soma.testing._store_suite import commit, digest_of, key_of, look
from tests.processes import started

pytestmark = pytest.mark.process

CROWD = 8

# Any look that finds other bytes than were put ends the process with an error.
HAMMER = """
import random, sys, time
from soma.cache._file_store import FileStore
from soma.cache._upkeep import gc
from soma.testing._store_suite import commit, look
root, seconds = sys.argv[1], float(sys.argv[2])
store, hits, end = FileStore(root), 0, time.monotonic() + seconds
while time.monotonic() < end:
    number = random.randrange(40)
    size = 1_200_000 if number == 0 else 300 + number * 997
    if random.random() < 0.5:
        commit(store, number, size)
    elif random.random() < 0.02:
        gc(store, random.choice([0, 200_000, 10**9]))
    elif random.random() < 0.02:
        store = FileStore(root)
    else:
        hits += look(store, number, size)
assert store.writable
print(hits)
"""
FILL = """
import sys, time
from soma.cache._file_store import FileStore
from soma.testing._store_suite import commit
store = FileStore(sys.argv[1], max_size=int(sys.argv[3]))
number, end = int(sys.argv[4]) * 1_000_000, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    number += 1
    commit(store, number, 20_000)
assert store.writable
print(number)
"""
POINT = """
import sys
from soma.cache._file_store import FileStore
from soma.testing._store_suite import digest_of, key_of
store, number = FileStore(sys.argv[1]), int(sys.argv[2])
for count in range(200):
    store.put_last(digest_of(1), str(number), key_of(count))
assert store.writable
print(count)
"""
FORK = """
import os, signal, sys
from soma.cache._file_store import FileStore
from soma.testing._store_suite import commit, look
store = FileStore(sys.argv[1])
commit(store, 0)
children = []
for child in range(1, 5):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        for number in range(child, 200, 4):
            commit(store, number)
        os._exit(0 if look(store, 0) and look(store, child) else 3)
    children.append(pid)
for number in range(100):
    commit(store, number)
codes = [os.waitpid(pid, 0)[1] for pid in children]
print(codes, sum(look(store, number) for number in range(200)))
"""


def crowd(script: str, *arguments: object) -> AbstractContextManager[list["subprocess.Popen[str]"]]:
    """Run a script in eight processes, which get their number last."""
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    return started([[*command, str(number)] for number in range(CROWD)])


def answers(processes: list[subprocess.Popen[str]]) -> list[int]:
    """Return what each process prints, or fail with its error."""
    found = []
    for process in processes:
        printed, wrong = process.communicate(timeout=90)
        assert process.returncode == 0, wrong
        found.append(int(printed))
    return found


def bytes_in(root: Path) -> int:
    """Return the bytes of all files of a store, half-written ones too."""
    total = 0
    for entry in FileStore(root).entries():
        total += entry.size
    return total


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_go_on_with_their_parents_store(tmp_path: Path) -> None:
    """Parent and forked children commit at once; all that they kept is there."""
    command = [sys.executable, "-W", "error", "-c", FORK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.split() == ["[0,", "0,", "0,", "0]", "200"]
    assert verify(FileStore(tmp_path)) == []
    assert not list(tmp_path.rglob(".tmp-*"))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_crowd_adds_to_one_file_of_pointers(tmp_path: Path) -> None:
    """Lines that eight processes add at once are all whole, and the last one is a last one."""
    with crowd(POINT, tmp_path) as processes:
        answers(processes)
    store = FileStore(tmp_path)

    assert verify(store) == []
    assert store.get_last(digest_of(1)) == key_of(199)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_crowd_never_finds_other_bytes(tmp_path: Path) -> None:
    """Eight processes write, read and collect 40 keys for 20 seconds."""
    with crowd(HAMMER, tmp_path, 20) as processes:
        hits = answers(processes)

    assert min(hits) > 0
    assert verify(FileStore(tmp_path)) == []
    assert not list(tmp_path.rglob(".tmp-*"))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_crowd_with_a_killer(tmp_path: Path) -> None:
    """Processes that are killed while they write leave nothing that is wrong."""
    for _ in range(4):
        with crowd(HAMMER, tmp_path, 60):
            time.sleep(2)  # and then all are killed
        assert verify(FileStore(tmp_path)) == []
    store = FileStore(tmp_path)
    orphans = list(tmp_path.rglob(".tmp-*"))
    for orphan in orphans:
        os.utime(orphan, (0, 0))

    assert gc(store, 10**9).removed == len(orphans)
    commit(store, 1, 1297)
    assert look(store, 1, 1297)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_crowd_stays_below_the_cap(tmp_path: Path) -> None:
    """While eight processes write, the folder is never a quarter over its cap."""
    cap, most = 20_000_000, 0
    with crowd(FILL, tmp_path, 10, cap) as processes:
        while any(process.poll() is None for process in processes):
            most = max(most, bytes_in(tmp_path))
            time.sleep(0.05)
        written = sum(count % 1_000_000 for count in answers(processes)) * 20_000

    assert written > cap * 1.5
    assert cap * 0.8 < most < cap * 1.25
    assert verify(FileStore(tmp_path)) == []

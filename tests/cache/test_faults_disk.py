"""A disk that is full, read-only or not there, and a process that may open no more files."""

import subprocess
import sys
from pathlib import Path

import pytest

from soma.cache._file_store import FileStore
from soma.cache._upkeep import gc, stats, verify
from soma.errors import CacheWarning
from soma.testing._store_suite import commit, heard, look

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sets limits as Linux does")

START = """
import os, resource, sys, warnings
from soma.cache._file_store import FileStore
from soma.cache._upkeep import stats, verify
from soma.testing._store_suite import commit, look
root = sys.argv[1]
"""


def output_of(script: str, *arguments: object, within: tuple[str, ...] = ()) -> list[str]:
    """Return the words that a script prints in a process of its own."""
    command = [*within, sys.executable, "-W", "always", "-c", START + script]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [*done.stdout.split(), str(done.stderr.count("CacheWarning:"))]


def mounted(options: str, folder: Path) -> tuple[str, ...]:
    """Return a command that runs another where `folder` is a file system of its own."""
    script = f'mount -t tmpfs -o {options} none {folder} && exec "$@"'
    within = ("unshare", "--mount", "sh", "-c", script, "sh")
    try:
        tried = subprocess.run([*within, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("has no `unshare`")
    if tried.returncode:
        pytest.skip("may not mount")
    return within


@pytest.mark.process
def test_a_file_size_limit_ends_writing(tmp_path: Path) -> None:
    """Blobs above the limit: no exception, one warning, what was there is still read."""
    commit(FileStore(tmp_path), 9)
    script = """
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
store = FileStore(root)
for number in range(5):
    commit(store, number)
os.write(1, f"{store.writable} {look(store, 9)} {look(store, 1)} {len(verify(store))}".encode())
"""
    assert output_of(script, tmp_path) == ["False", "True", "False", "0", "1"]
    assert not list(tmp_path.rglob(".tmp-*"))


@pytest.mark.process
def test_a_full_disk_ends_writing(tmp_path: Path) -> None:
    """A disk of 64 KB takes what fits; then there is one warning and only reading."""
    script = """
store = FileStore(root)
for number in range(20):
    commit(store, number, 9_000)
hits = sum(look(store, number, 9_000) for number in range(20))
print(store.writable, 0 < hits < 10, len(verify(store)))
"""
    found = output_of(script, tmp_path, within=mounted("size=64k", tmp_path))

    assert found == ["False", "True", "0", "1"]


@pytest.mark.process
def test_a_read_only_disk_is_only_read(tmp_path: Path) -> None:
    """A store on a read-only mount, old enough to be touched, hits and keeps nothing new."""
    script = """
import subprocess
commit(FileStore(root), 9)
for folder, _, files in os.walk(root):
    for file in files:
        os.utime(f"{folder}/{file}", (0, 0))
subprocess.run(["mount", "-o", "remount,ro", root], check=True)
store = FileStore(root)
commit(store, 1)
print(look(store, 9), look(store, 1), store.writable)
"""
    found = output_of(script, tmp_path, within=mounted("size=1m", tmp_path))

    assert found == ["True", "False", "False", "1"]


@pytest.mark.parametrize("below", ["file", "file/deeper", "/dev/full", "/proc/soma", "/dev/null/x"])
def test_a_place_that_is_none(tmp_path: Path, below: str) -> None:
    """A path below a regular file, or in a device: one warning, misses, no exception."""
    (tmp_path / "file").write_text("mine")
    store = FileStore(tmp_path / below)
    assert not look(store, 1)
    with heard() as said:
        commit(store, 1)
        commit(store, 2)

    assert ["no longer be written" in text for text in said] == [True]
    assert (store.writable, look(store, 1)) == (False, False)
    assert (stats(store).entries, verify(store), gc(store, 0).removed) == (0, [], 0)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.process
def test_too_many_open_files_is_no_damage(tmp_path: Path) -> None:
    """A read without a descriptor is a miss and one warning: nothing is removed or rewritten."""
    commit(FileStore(tmp_path), 1)
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*")}
    script = """
store = FileStore(root)
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
missed = look(store, 1)
for descriptor in held:
    os.close(descriptor)
commit(store, 1)
print(missed, look(store, 1), store.writable, stats(store).damaged)
"""
    assert output_of(script, tmp_path) == ["False", "True", "True", "0", "1"]
    kept = {path: path.stat().st_ino for path in before}
    records = [path for path in before if path.suffix == ".json"]
    assert all(kept[path] == before[path] for path in records)


def test_records_that_cannot_be_written_are_said_once(tmp_path: Path) -> None:
    """Facts that are no JSON cost the record and one warning; the store goes on."""
    store = FileStore(tmp_path)
    commit(store, 1)
    record = store.get_record(next(e.name for e in store.entries() if e.kind == "record"))
    assert record is not None
    record.facts["bad"] = "\udc80"
    with pytest.warns(CacheWarning, match="does not keep a record"):
        store.put_record(record)

    assert look(store, 1)
    assert store.writable

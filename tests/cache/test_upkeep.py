"""Stats, collection, verification and pins, on a folder."""

import os
import time
from pathlib import Path

import pytest

from soma.cache._file_store import FileStore
from soma.cache._memory_store import MemoryStore
from soma.cache._store import Entry, Store
from soma.cache._upkeep import gc, pin, stats, unpin, verify
from soma.files import TEMPORARY
from soma.testing._store_suite import commit, digest_of, key_of, look


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Give a store of five values; number 0 was used last a day before number 4."""
    store = FileStore(tmp_path / "cache")
    for number in range(5):
        commit(store, number)
        age(store, number, days=5 - number)
    return store


def files_of(store: FileStore, number: int) -> list[Path]:
    """Return the record and the blob of a number."""
    key, digest = key_of(number), digest_of(number)
    return [
        Path(store.root, "records", key[:1], f"{key}.json"),
        Path(store.root, "blobs", digest[:1], digest),
    ]


def age(store: FileStore, number: int, *, days: float) -> None:
    """Let a number's files look as if they were used days ago."""
    for path in files_of(store, number):
        os.utime(path, (time.time() - days * 86_400,) * 2)


def left_in(store: Store) -> int:
    """Return the bytes of a store."""
    return sum(entry.size for entry in store.entries())


def test_stats_tell_this_process_apart(store: FileStore) -> None:
    """What is there is everyone's; hits, misses and damage are this process's."""
    again = FileStore(store.root)
    look(again, 0)
    look(again, 9)
    found = stats(again)

    assert (found.place, found.entries, found.blobs) == (store.root, 5, 5)
    assert (found.states, found.outputs, found.pinned) == (2, 3, 0)
    assert (found.hits, found.misses, found.damaged) == (1, 1, 0)


def test_stats_of_nothing(tmp_path: Path) -> None:
    """A folder that is not there is empty."""
    found = stats(FileStore(tmp_path / "none"))

    assert (found.entries, found.bytes) == (0, 0)


def test_the_oldest_go_first(store: FileStore) -> None:
    """A collection removes what was not used for longest, and no more than needed."""
    oldest = sum(path.stat().st_size for number in (0, 1) for path in files_of(store, number))
    done = gc(store, left_in(store) - oldest)

    assert [look(store, number) for number in range(5)] == [False, False, True, True, True]
    assert done.left == left_in(store)


def test_a_hit_makes_young(store: FileStore) -> None:
    """What was looked at yesterday goes before what was looked at now."""
    look(store, 0)
    gc(store, left_in(store) // 2)

    assert look(store, 0)
    assert not look(store, 1)


def test_down_to_counts_only_above_the_cap(store: FileStore) -> None:
    """Below the cap nothing goes; above it, more than needed."""
    total = left_in(store)
    assert gc(store, total, down_to=0).removed == 0
    assert gc(store, total - 1, down_to=total // 2).left <= total // 2


def test_a_pin_holds_the_oldest(store: FileStore) -> None:
    """A pinned value stays, with its blob, until it is unpinned."""
    pin(store, key_of(0))
    age(store, 0, days=9)
    gc(store, 0)
    assert look(store, 0)
    assert stats(store).pinned == 1

    unpin(store, key_of(0))
    gc(store, 0)
    assert stats(store).bytes == 0


def test_only_old_half_written_files_are_swept(store: FileStore) -> None:
    """A file that is being written is left alone; one that was left behind goes."""
    folders = [Path(store.root), files_of(store, 0)[0].parent]
    for folder in folders:
        for name, hours in (("old", 2), ("new", 0.5)):
            path = folder / f"{TEMPORARY}{name}"
            path.write_bytes(b"half")
            os.utime(path, (time.time() - hours * 3600,) * 2)
    FileStore(store.root)  # opening sweeps nothing
    assert gc(store, 10**9).removed == 2

    assert sorted(path.name for path in Path(store.root).rglob(f"{TEMPORARY}*")) == [".tmp-new"] * 2


def test_foreign_files_stay(store: FileStore) -> None:
    """A collection touches only names of its own."""
    folder = files_of(store, 0)[1].parent
    names = [".nfs0000000000000001", "notes.txt", "f" * 64, "A" * 64, "pickle.bin"]
    for name in names:
        (folder / name).write_text("mine")
    Path(store.root, "README").write_text("mine")
    gc(store, 0)

    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert Path(store.root, "README").exists()
    assert Path(store.root, "format.json").exists()


@pytest.mark.parametrize("part", ["shard", "folder", "file"])
def test_no_link_is_followed_out(store: FileStore, tmp_path: Path, part: str) -> None:
    """A collection removes a link at most, never what it leads to."""
    outside = tmp_path / "outside"
    file = files_of(store, 0)[1]
    linked = {"shard": file.parent, "folder": file.parent.parent, "file": file}[part]
    linked.rename(outside)
    linked.symlink_to(outside)
    inside = [path for path in (outside, *outside.rglob("*")) if path.is_file()]
    gc(store, 0)

    assert inside
    assert all(path.exists() for path in inside)


@pytest.mark.parametrize("stamp", [0, 4_102_444_800])
def test_times_only_order(store: FileStore, stamp: int) -> None:
    """Files from 1970 or 2100 hit, are collected, and break nothing."""
    for number in range(5):
        for path in files_of(store, number):
            os.utime(path, (stamp, stamp))

    assert look(FileStore(store.root), 1)
    assert gc(store, 1000).left <= 1000
    assert verify(store) == []


def test_a_store_stays_below_its_cap(tmp_path: Path) -> None:
    """Writing collects: the folder is over the cap by a 64th and one value at most."""
    cap = 100_000
    store = FileStore(tmp_path, max_size=cap)
    most = 0
    for number in range(200):
        commit(store, number, 5_000)
        most = max(most, left_in(store))

    assert cap * 0.8 < most <= cap + cap // 64 + 6_000
    assert look(store, 199, 5_000)
    assert store.counts.collected > 0


def test_short_processes_keep_the_cap(tmp_path: Path) -> None:
    """Stores that each write little, as short scripts do, still collect in the end."""
    cap = 1_000_000
    for number in range(300):
        commit(FileStore(tmp_path, max_size=cap), number, 8_000)

    assert left_in(FileStore(tmp_path)) < cap * 1.3


def test_memory_keeps_a_cap_too() -> None:
    """A store in memory forgets what was not used for longest."""
    store = MemoryStore(max_size=20_000)
    for number in range(50):
        commit(store, number, 1_000)

    assert left_in(store) <= 22_000
    assert look(store, 49, 1_000)
    assert not look(store, 0, 1_000)


def test_what_is_larger_than_the_cap_is_not_kept(tmp_path: Path) -> None:
    """One huge value does not push out all others."""
    store = FileStore(tmp_path, max_size=50_000)
    commit(store, 1)
    commit(store, 2, 60_000)

    assert look(store, 1)
    assert not look(store, 2, 60_000)


def test_verify_names_each_damaged_file(store: FileStore) -> None:
    """Records, blobs and pointers that are not what they were are told with the reason."""
    store.put_last(digest_of(7), "a", key_of(1))
    files_of(store, 0)[0].write_bytes(b"torn")
    files_of(store, 1)[1].write_bytes(b"torn")
    files_of(store, 2)[0].replace(files_of(store, 3)[0])
    next(Path(store.root, "last").rglob("*.json")).write_bytes(b"[]")
    found = {(damage.entry.kind, damage.entry.name): damage.reason for damage in verify(store)}

    assert found == {
        ("record", key_of(0)): "it does not begin as a record does",
        ("blob", digest_of(1)): "its bytes are not the ones that were written",
        ("record", key_of(3)): "it is the record of another key",
        ("last", digest_of(7)): "it does not begin as a record does",
    }


def test_a_collected_blob_is_no_damage(store: FileStore) -> None:
    """A record may outlive its blob: it still tells the digest."""
    store.remove(Entry("blob", digest_of(0), 0, 0.0))

    assert verify(store) == []
    assert store.get_record(key_of(0)) is not None

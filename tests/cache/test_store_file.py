"""The store in a folder: where things are, what is mapped, what is trusted."""

import os
import pickle  # noqa: TID251 - how a store gets to another process
import stat
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from soma.cache import Cache
from soma.cache._file_store import LONGEST_LAST, MAPPED_FROM, MOST_MAPPED, FileStore
from soma.cache._mounts import is_local
from soma.cache._record import FORMAT
from soma.cache._store import Blob
from soma.errors import CacheWarning
from soma.files import TEMPORARY
from soma.testing._store_suite import commit, digest_of, key_of, look, value_of


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Give an empty store in a folder that is not there yet."""
    return FileStore(tmp_path / "cache")


def blob_of(store: FileStore, number: int) -> Path:
    """Return where a number's blob is."""
    digest = digest_of(number)
    return Path(store.root, "blobs", digest[:1], digest)


def record_of(store: FileStore, number: int) -> Path:
    """Return where a number's record is."""
    key = key_of(number)
    return Path(store.root, "records", key[:1], f"{key}.json")


def opened(store: FileStore, number: int) -> Blob:
    """Return the blob of a number's record."""
    record = store.get_record(key_of(number))
    assert record is not None
    blob = store.open_blob(record.digest, record.blob_hash)
    assert blob is not None
    return blob


def test_a_read_makes_nothing(store: FileStore) -> None:
    """Looking into a store that is not there does not make it."""
    assert not look(store, 1)
    assert not store.has_blob(digest_of(1))
    assert list(store.entries()) == []
    assert not Path(store.root).exists()


def test_the_files_are_where_they_should_be(store: FileStore) -> None:
    """A small value is one blob and one record; the folder says its format."""
    commit(store, 1)
    files = {path for path in Path(store.root).rglob("*") if path.is_file()}

    assert files == {blob_of(store, 1), record_of(store, 1), Path(store.root, "format.json")}
    assert blob_of(store, 1).read_bytes() == value_of(1)
    assert Path(store.root, "format.json").read_text() == f'{{"format":{FORMAT}}}'


def test_only_the_owner_reads(store: FileStore) -> None:
    """Files are 0600 and folders 0700."""
    commit(store, 1)
    for path in [Path(store.root), *Path(store.root).rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize(("size", "mapped"), [(MAPPED_FROM - 1, False), (MAPPED_FROM, True)])
def test_large_blobs_are_mapped(store: FileStore, size: int, mapped: bool) -> None:
    """From a megabyte up, on a local disk, bytes are pages of the file."""
    if not is_local(store.root):
        pytest.skip("the temporary folder is on no disk that is known to be local")
    commit(store, 1, size)
    with opened(store, 1) as blob:
        assert blob.mapped is mapped
        assert bytes(blob.buffer) == value_of(1, size)


def test_who_writes_to_mapped_bytes_changes_a_copy(store: FileStore) -> None:
    """A mapping is private: the file stays as it is."""
    commit(store, 1, MAPPED_FROM)
    with opened(store, 1) as blob:
        if blob.mapped:
            blob.buffer[:4] = b"mine"
    assert look(store, 1, MAPPED_FROM)


def test_each_value_read_is_its_own(store: FileStore) -> None:
    """Arrays lie in the bytes that were read for them, and two hits never share those."""
    cache = Cache(store)
    cache.keep(key_of(1), [np.zeros(9_000), np.ones(9_000)], "output", {})
    record = cache.find(key_of(1))
    assert record is not None
    (zeros, ones), again = cast(list[Any], cache.load(record)), cast(list[Any], cache.load(record))
    zeros += 5

    assert (ones.sum(), again[0].sum(), again[1].sum()) == (9_000, 0, 9_000)
    assert cast(list[Any], cache.load(record))[0].sum() == 0


def test_a_view_outlives_its_blob(store: FileStore) -> None:
    """Closing a blob and removing its file leave a view of its bytes alone."""
    commit(store, 1, MAPPED_FROM)
    blob = opened(store, 1)
    view = memoryview(blob.buffer)[:5]
    blob.close()
    blob_of(store, 1).unlink()

    assert bytes(view) == b"value"


def test_only_so_many_blobs_are_mapped(store: FileStore) -> None:
    """Mappings may hold descriptors: past a number of them, bytes are read."""
    commit(store, 1, MAPPED_FROM)
    blobs = [opened(store, 1) for _ in range(MOST_MAPPED + 1)]

    assert not blobs[-1].mapped
    for blob in blobs:
        blob.close()
    assert opened(store, 1).mapped is is_local(store.root)


def test_a_blob_is_hashed_once(store: FileStore) -> None:
    """A process trusts what it has checked until the file is another one."""
    commit(store, 1)
    assert look(store, 1)
    path, when = blob_of(store, 1), blob_of(store, 1).stat()
    path.write_bytes(value_of(2))
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert opened(store, 1).buffer == value_of(2)  # trusted: it looks like the same file

    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns + 1))
    with pytest.warns(CacheWarning, match="damaged"):
        assert not look(store, 1)


@pytest.mark.parametrize("age", [10 * 365 * 86_400.0, 7200.0, -80 * 365 * 86_400.0])
def test_a_hit_brings_the_times_to_now(store: FileStore, age: float) -> None:
    """Old files, and files from the future, are marked as used; they hit all the same."""
    commit(store, 1)
    paths = [record_of(store, 1), blob_of(store, 1)]
    for path in paths:
        os.utime(path, (time.time() - age,) * 2)

    assert look(store, 1)
    assert all(abs(path.stat().st_mtime - time.time()) < 60 for path in paths)


def test_a_hit_is_noted_once_an_hour(store: FileStore) -> None:
    """Files used within the hour are not touched again."""
    commit(store, 1)
    when = time.time() - 1800
    os.utime(record_of(store, 1), (when, when))
    look(store, 1)

    assert record_of(store, 1).stat().st_mtime == pytest.approx(when, abs=1)


@pytest.mark.parametrize("text", [f'{{"format":{FORMAT + 1}}}', '{"format": 999999, "more": 1}'])
def test_a_newer_folder_is_left_alone(store: FileStore, text: str) -> None:
    """A folder of a later version is neither read nor written, and that is said once."""
    commit(store, 1)
    Path(store.root, "format.json").write_text(text)
    with pytest.warns(CacheWarning, match="Update soma") as said:
        late = FileStore(store.root)
    assert not look(late, 1)
    commit(late, 2)

    assert (len(said), late.writable) == (1, False)
    assert not record_of(store, 2).exists()


@pytest.mark.parametrize("text", ["", "[[[", '{"format":"x"}', "\0" * 100, '{"format":1,"a":1}'])
def test_a_damaged_format_file_is_no_newer_one(store: FileStore, text: str) -> None:
    """Nonsense in `format.json` does not cost the cache."""
    commit(store, 1)
    Path(store.root, "format.json").write_text(text)
    again = FileStore(store.root)
    commit(again, 2)

    assert look(again, 1)
    assert look(again, 2)


def test_a_folder_that_vanished_is_made_again(store: FileStore) -> None:
    """Deleting the folder under a running process loses the entries and nothing else."""
    commit(store, 1)
    Path(store.root).rename(f"{store.root}-gone")
    assert not look(store, 1)
    commit(store, 1)

    assert look(store, 1)
    assert Path(store.root, "format.json").exists()


def test_foreign_names_are_not_listed(store: FileStore) -> None:
    """Only names of the store's own are its files."""
    commit(store, 1)
    folder = blob_of(store, 1).parent
    for name in (".nfs0000000000000001", "notes.txt", "f" * 64, digest_of(1) + ".json"):
        (folder / name).write_text("mine")
    (folder / f"{TEMPORARY}1-2-3").write_text("half")
    kinds = sorted(entry.kind for entry in store.entries())

    assert kinds == ["blob", "record", "temporary"]


def test_a_store_travels_to_another_process(store: FileStore) -> None:
    """A store is pickled as its folder and cap."""
    commit(store, 1)
    there = pickle.loads(pickle.dumps(FileStore(store.root, max_size=10_000)))

    assert look(there, 1)
    assert (there.root, there.max_size) == (store.root, 10_000)


@pytest.mark.parametrize(
    ("table", "local"),
    [
        ("1 0 8:1 / / rw - ext4 /dev/sda rw", True),
        ("2 1 0:1 / /data rw - nfs4 host:/x rw\n1 0 8:1 / / rw - ext4 /dev/sda rw", False),
        ("1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:1 / /data rw - nfs4 host:/x rw", False),
        ("1 0 8:1 / / rw - nfs host:/x rw\n2 1 0:1 / /data/in\\040here rw - xfs /dev/b rw", True),
        ("1 0 8:1 / / rw - xfs /dev/a rw\n2 1 0:1 / /dat rw - nfs host:/x rw", True),
        ("1 0 8:1 / / rw - xfs /dev/a rw\n2 1 0:1 / / rw - fuse.sshfs host:/x rw", False),
        ("nonsense", False),
    ],
)
def test_local_is_known_by_the_mount(tmp_path: Path, table: str, local: bool) -> None:
    """The innermost and latest mount decides; what is not known is not local."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(table)

    assert is_local("/data/in here/cache", str(mounts)) is local
    assert not is_local("/data", str(tmp_path / "none"))


def test_pointers_do_not_grow_for_ever(tmp_path: Path) -> None:
    """A file of pointers that has grown long is written anew with those that count."""
    store = FileStore(tmp_path)
    for number in range(100):
        store.put_last(digest_of(1), str(number % 3), key_of(number))

    (file,) = (entry for entry in store.entries() if entry.kind == "last")
    assert file.size < LONGEST_LAST + 1_000
    assert [store.get_last(digest_of(1), sort) for sort in "012"] == [
        key_of(number) for number in (99, 97, 98)
    ]


def test_no_pointer_is_added_through_a_link(tmp_path: Path) -> None:
    """A link in the place of a file of pointers is replaced, and what it leads to stays."""
    store, outside = FileStore(tmp_path / "cache"), tmp_path / "outside"
    outside.write_text("mine")
    store.put_last(digest_of(1), "a", key_of(1))
    file = next((tmp_path / "cache" / "last").rglob("*.json"))
    file.unlink()
    file.symlink_to(outside)
    with pytest.warns(CacheWarning, match="damaged"):
        store.put_last(digest_of(1), "a", key_of(2))

    assert outside.read_text() == "mine"
    assert store.get_last(digest_of(1)) == key_of(2)

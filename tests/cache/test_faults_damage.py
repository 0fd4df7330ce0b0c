"""Every way to damage a file of a store: the answer is a miss, and the next commit repairs it."""

import os
import pickle  # noqa: TID251 - what a stranger would put there
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from soma.cache._file_store import MAPPED_FROM, FileStore
from soma.cache._record import LARGEST
from soma.cache._upkeep import gc, stats, verify
from soma.errors import CacheWarning
from soma.testing._store_suite import commit, digest_of, heard, key_of, look

Harm = Callable[[Path], None]
SIZES = [300, MAPPED_FROM + 4096]


class Bomb:
    """Runs a command where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.path}",)


def kept(tmp_path: Path, size: int) -> tuple[FileStore, dict[str, Path]]:
    """Return a fresh store on a folder with numbers 1 and 2, and the files of number 1."""
    for number in (1, 2):
        commit(FileStore(tmp_path / "cache"), number, size)
    key, digest = key_of(1), digest_of(1)
    store = FileStore(tmp_path / "cache")
    record = Path(store.root, "records", key[:1], f"{key}.json")
    return store, {"record": record, "blob": Path(store.root, "blobs", digest[:1], digest)}


def cut(part: int) -> Harm:
    """Keep so many 16ths of a file."""

    def harm(path: Path) -> None:
        os.truncate(path, path.stat().st_size * part // 16)

    return harm


def flip(part: int) -> Harm:
    """Flip one bit in a 16th of a file."""

    def harm(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[len(data) * part // 16] ^= 1 << part % 8
        path.write_bytes(data)

    return harm


def zero(path: Path) -> None:
    """Keep the length and lose the bytes, as a power cut does."""
    path.write_bytes(bytes(path.stat().st_size))


def longer(path: Path) -> None:
    """Add a byte."""
    path.write_bytes(path.read_bytes() + b"\0")


def hostile(path: Path) -> None:
    """Write deep brackets."""
    path.write_bytes(b"[" * 50_000)


def huge(path: Path) -> None:
    """Make a file that claims a terabyte."""
    os.truncate(path, 1 << 40) if path.suffix else path.write_bytes(b"x" * LARGEST)


def pickled(path: Path) -> None:
    """Write a pickle that runs a command."""
    path.write_bytes(pickle.dumps(Bomb(path.parents[3] / "pwned")))


def swapped(path: Path) -> None:
    """Exchange a file for its sibling's bytes."""
    siblings = [file for file in path.parents[1].rglob("*") if file.is_file() and file != path]
    shutil.copyfile(siblings[0], path)


def folder(path: Path) -> None:
    """Put a folder in a file's place."""
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    """Put a pipe in a file's place, on which a reader would wait for ever."""
    path.unlink()
    os.mkfifo(path)


def link_out(path: Path) -> None:
    """Put a link to the same bytes outside in a file's place."""
    outside = path.parents[3] / f"outside{path.suffix}"
    path.rename(outside)
    path.symlink_to(outside)


def link_to_itself(path: Path) -> None:
    """Put a link in a file's place that leads nowhere."""
    path.unlink()
    path.symlink_to(path)


HARMS: dict[str, Harm] = {
    **{f"cut to {part}/16": cut(part) for part in range(16)},
    **{f"flipped at {part}/16": flip(part) for part in range(16)},
    **{
        harm.__name__: harm
        for harm in (zero, longer, hostile, huge, pickled, swapped, folder, pipe, link_out)
    },
    "link_to_itself": link_to_itself,
}


@pytest.mark.skipif(sys.platform == "win32", reason="has neither pipes nor links for everyone")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", ["record", "blob"])
@pytest.mark.parametrize("how", HARMS)
def test_damage_is_a_miss_and_is_repaired(tmp_path: Path, how: str, which: str, size: int) -> None:
    """Whatever stands in a file's place: one warning, a miss, counted, then whole again."""
    store, files = kept(tmp_path, size)
    HARMS[how](files[which])
    assert [damage.entry.kind for damage in verify(store)] == [which]

    with heard() as said:
        assert not look(store, 1, size)
        assert not look(store, 1, size)
    assert (len(said), stats(store).damaged) == (1, 1)
    assert "has a damaged file" in said[0]
    assert look(store, 2, size)

    commit(store, 1, size)
    assert look(store, 1, size)
    assert look(FileStore(store.root), 1, size)
    assert verify(store) == []
    assert not (tmp_path / "pwned").exists()


def test_a_full_folder_in_the_way_is_left(tmp_path: Path) -> None:
    """A folder with something in it stays; the value is computed each time, and no more."""
    store, files = kept(tmp_path, 300)
    folder(files["blob"])
    (files["blob"] / "mine").touch()
    with pytest.warns(CacheWarning, match="damaged"):
        commit(store, 1)

    assert not look(store, 1)
    assert store.writable
    gc(store, 0)
    assert (files["blob"] / "mine").exists()


def test_damage_after_the_first_look_is_seen(tmp_path: Path) -> None:
    """Trust ends when the file is another one."""
    store, files = kept(tmp_path, 300)
    assert look(store, 1)
    zero(files["blob"])

    with pytest.warns(CacheWarning, match="damaged"):
        assert not look(store, 1)


def test_a_pointer_that_is_damaged_is_unknown(tmp_path: Path) -> None:
    """The last key of a name is read whole or not at all."""
    store, _ = kept(tmp_path, 300)
    store.put_last(digest_of(1), "a", key_of(1))
    store.put_last(digest_of(2), "a", key_of(2))
    one, two = (Path(store.root, "last", n[:1], f"{n}.json") for n in map(digest_of, (1, 2)))
    shutil.copyfile(two, one)
    two.write_bytes(b"\xff")

    assert store.get_last(digest_of(1)) is None
    assert store.get_last(digest_of(2)) is None

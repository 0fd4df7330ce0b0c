"""A store in a folder, for any number of processes and machines at once, without locks.

Every file is written whole under a name that nobody else uses and then renamed, so two
writers of one key both win. What is read is checked once and then trusted, and mapped where
that is safe.
"""
# ruff: noqa: PTH100, PTH106, PTH108, PTH111, PTH116, PTH120 - a hit is few calls, `Path`s many

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import FileIO
from mmap import ACCESS_COPY, mmap
from typing import NamedTuple, cast
from weakref import WeakSet

import msgspec

from soma.cache._base_store import BaseStore
from soma.cache._layout import path_of
from soma.cache._listing import listing
from soma.cache._mounts import is_local
from soma.cache._record import FORMAT, LARGEST, Last, Record, check_hash, write_last
from soma.cache._store import Blob, Damaged, Entry
from soma.files import Appender, Before, NoPlainFile, make_folder, write_atomically

__all__ = ["FileStore"]

MAPPED_FROM = 1_000_000  # bytes; a smaller file is read sooner than mapped
MOST_DECODED = 4_096  # records
LONGEST_LAST = 8_192  # bytes of pointers, from which a file of them is written anew
MOST_MAPPED = 256  # a mapping may hold one of the process's file descriptors
SETTLED_AFTER = 2.0  # seconds; two writes within a tick of the clock leave one time
TOUCHED_AFTER = 3600.0  # seconds; a hit need not be noted each time

# A link could lead out of the folder, and a pipe would wait for a writer.
_READ = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
_UNTRACKED = {"trackfd": False} if sys.version_info >= (3, 13) else {}


class _Checked(NamedTuple):
    """A file as it was when its bytes were found to be right."""

    inode: int
    size: int
    modified: int
    blob_hash: str


class FileStore(BaseStore):
    """Keeps records and blobs as files below a folder, which is made at the first write.

    Args:
        root: the folder.
        max_size: bytes above which the files that were not used for longest go; None: no cap.
        before: called before each system call of a write; tests let it fail or kill.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        max_size: int | None = None,
        before: Before | None = None,
    ) -> None:
        super().__init__(max_size=max_size)
        self.root = os.path.abspath(os.path.expanduser(root))
        self._before = before
        self._checked: dict[str, _Checked] = {}
        self._decoded: dict[str, tuple[os.stat_result, Record]] = {}
        self._maps: WeakSet[mmap] = WeakSet()
        self._local: bool | None = None
        self._refuse_newer()

    def __reduce__(self) -> tuple[object, ...]:
        return _opened, (self.root, self.max_size)

    @property
    def place(self) -> str:
        """Where the store is, as its user would say."""
        return self.root

    def get_record(self, key: str) -> Record | None:
        """Return the record of a key, read again only if its file is another; None is a miss."""
        try:
            status = os.lstat(f"{self.root}/{path_of('record', check_hash(key))}")
        except FileNotFoundError:
            self.counts.misses += 1
            return None
        except OSError:
            return super().get_record(key)
        known = self._decoded.get(key)
        if self.readable and known is not None and _is_as_it_was(known[0], status):
            self.counts.hits += 1
            return known[1]
        record = super().get_record(key)
        if record is not None and _is_settled(status):
            if len(self._decoded) >= MOST_DECODED:
                self._decoded.clear()
            self._decoded[key] = (status, record)
        return record

    def open_blob(self, digest: str, blob_hash: str | None = None) -> Blob | None:
        """Return the bytes kept under a digest, checked against `blob_hash` once; None: a miss."""
        path = path_of("blob", check_hash(digest))
        if not self.readable:
            return None
        try:
            found = self._open(path, own=True)
        except OSError as error:
            self._failed_to_read(path, error)
            return None
        if found is None:
            return None
        data, status = found
        if blob_hash is not None:
            now = _Checked(status.st_ino, status.st_size, status.st_mtime_ns, blob_hash)
            if self._checked.get(digest) != now:
                if not self._is_intact(path, data, blob_hash):
                    return None
                self._checked[digest] = now
        self.counts.blobs_read += 1
        return Blob(data)

    def read(self, entry: Entry) -> memoryview | None:
        """Return the bytes of a file, unchecked; None: it is gone."""
        if entry.kind == "temporary":
            return None
        path = path_of(entry.kind, entry.name)
        found = self._open(path, own=entry.kind == "blob", touched=False)
        return None if found is None else memoryview(found[0])

    def entries(self) -> Iterator[Entry]:
        """List the files of the store, and only those."""
        return listing(self.root)

    def _read(self, path: str) -> bytes | None:
        found = self._open(path, own=False)
        return None if found is None else cast(bytes, found[0])

    def _open(
        self, path: str, *, own: bool, touched: bool = True
    ) -> tuple[bytes | bytearray | mmap, os.stat_result] | None:
        """Return the bytes of a file and its status; None: there is no such file.

        Args:
            own: of any size, and as memory that may be written to.
        """
        full = f"{self.root}/{path}"
        try:
            descriptor = os.open(full, _READ)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise Damaged("it is no plain file") from error
            raise
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Damaged("it is no plain file")
            if not own and status.st_size > LARGEST:
                raise Damaged("it is too large")
            data = (self._own if own else _read_all)(descriptor, status.st_size)
        finally:
            os.close(descriptor)
        if touched and abs(time.time() - status.st_mtime) > TOUCHED_AFTER:
            status = _touch(full, status)
        return data, status

    def _own(self, descriptor: int, size: int) -> bytearray | mmap:
        """Return an open file's bytes, mapped if it is large and the disk is this machine's."""
        if size >= MAPPED_FROM and len(self._maps) < MOST_MAPPED and self._is_local():
            with suppress(OSError, ValueError):
                pages = mmap(descriptor, size, access=ACCESS_COPY, **_UNTRACKED)
                self._maps.add(pages)
                return pages
        try:
            data = bytearray(size)
        except MemoryError as error:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)) from error
        place = 0
        with FileIO(descriptor, closefd=False) as file, memoryview(data) as view:
            while place < size and (more := file.readinto(view[place:])):
                place += more
        del data[place:]
        return data

    def _is_local(self) -> bool:
        """Is the folder on a disk of this machine?"""
        if self._local is None:
            self._local = is_local(self.root)
        return self._local

    def _write(self, path: str, parts: Sequence[bytes | memoryview]) -> None:
        full = f"{self.root}/{path}"
        if path.startswith("last/"):
            # Some file systems bring a file to the disk at once when it replaces another.
            self._remove(path)
        try:
            write_atomically(full, parts, before=self._before)
        except FileNotFoundError:
            self._make_folders(os.path.dirname(full))
            write_atomically(full, parts, before=self._before)
        except NoPlainFile:  # damage, since the folder is the cache's own
            self._remove(path)
            write_atomically(full, parts, before=self._before)
        except IsADirectoryError:
            with suppress(OSError):
                os.rmdir(full)
            write_atomically(full, parts, before=self._before)

    def _add(self, path: str, last: Last) -> None:
        size = self._size(path)
        # Growing costs a fraction of a new file. Over a network, two may write to one place.
        if size is None or size > LONGEST_LAST or not self._is_local():
            super()._add(path, last)
            return
        line = write_last(last)
        try:
            if self._before is not None:
                self._before("append")
            with Appender(f"{self.root}/{path}") as file:
                file.append(line[:-1])
        except OSError as error:
            self._failed_to_write(path, error)
        else:
            self._count_written(len(line))

    def _make_folders(self, folder: str) -> None:
        """Make a folder below the root, after the file that says which format the others have."""
        make_folder(self.root, before=self._before)
        if self._format() is None:
            about = msgspec.json.encode({"format": FORMAT})
            write_atomically(f"{self.root}/format.json", [about], before=self._before)
        make_folder(folder, before=self._before)

    def _format(self) -> int | None:
        """Return the format of the files in this folder; None: nobody has said."""
        try:
            data = self._read("format.json")
            return None if data is None else _format_in(data)
        except OSError:
            return None

    def _refuse_newer(self) -> None:
        """Neither read nor write a folder of a later version."""
        found = self._format()
        if found is not None and found > FORMAT:
            self.readable = self.writable = False
            self._warn_once(
                "off",
                f"has format {found} and this version knows {FORMAT}, so nothing is read or "
                "kept. Update soma, or choose another folder",
            )

    def _size(self, path: str) -> int | None:
        try:
            status = os.lstat(f"{self.root}/{path}")
        except OSError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def _remove(self, path: str) -> None:
        with suppress(OSError):
            os.unlink(f"{self.root}/{path}")


def _read_all(descriptor: int, size: int) -> bytes:
    """Return the bytes of a small open file."""
    data = os.read(descriptor, size)
    while len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data


def _opened(root: str, max_size: int | None) -> FileStore:
    """Return the store of another process, for this one."""
    return FileStore(root, max_size=max_size)


def _is_as_it_was(before: os.stat_result, now: os.stat_result) -> bool:
    """Is this the file it was, and in no need of being touched?"""
    return (
        before.st_mtime_ns == now.st_mtime_ns
        and before.st_ino == now.st_ino
        and before.st_size == now.st_size
        and before.st_ctime_ns == now.st_ctime_ns
        and abs(time.time() - now.st_mtime) <= TOUCHED_AFTER
    )


def _is_settled(status: os.stat_result) -> bool:
    """Would another write to this file show in its times?"""
    return time.time() - max(status.st_mtime, status.st_ctime) > SETTLED_AFTER


def _touch(path: str, status: os.stat_result) -> os.stat_result:
    """Note that a file is in use, and return its status, as it is now where that worked."""
    try:
        os.utime(path)
        return os.stat(path)
    except OSError:
        return status


def _format_in(data: bytes) -> int | None:
    """Return the format that a `format.json` speaks of."""
    try:
        return msgspec.json.decode(data, type=dict[str, int]).get("format")
    except (ValueError, RecursionError):
        return None

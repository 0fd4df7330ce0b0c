"""What all stores share: what they check, what they count, and what they do about failures.

A store adds how bytes are read, written, listed and removed at the paths of `_layout.py`. A
read that fails is a miss, a write that fails switches writing off; both say so once and
neither raises.
"""

import errno
from collections.abc import Iterator, Sequence
from mmap import mmap
from secrets import randbelow
from warnings import warn

from soma.cache._layout import path_of
from soma.cache._record import (
    TORN,
    Last,
    OtherFormat,
    Record,
    check_hash,
    latest_lines,
    parse,
    read_lasts,
    write_last,
    write_record,
)
from soma.cache._store import Blob, Counts, Damaged, Entry, Lost
from soma.cache._tensor_file import hash_file
from soma.cache._upkeep import gc
from soma.errors import CacheWarning

__all__ = ["BaseStore"]

_TRANSIENT = {errno.EMFILE, errno.ENFILE}  # until somebody closes a file


class BaseStore:
    """A store whose subclass says how bytes are read, written, listed and removed."""

    def __init__(self, *, max_size: int | None = None) -> None:
        self.counts = Counts()
        self.max_size = max_size
        self.readable = self.writable = True
        self._damaged: set[str] = set()
        self._unreadable: set[str] = set()  # just now; they may be whole, so nothing replaces them
        self._warned: set[str] = set()
        # A random start: many short processes collect as often as one long one that writes as much.
        self._collect_every = max(1, (max_size or 0) // 64)
        self._since_collection = randbelow(self._collect_every)

    @property
    def place(self) -> str:
        """Where the store is, as its user would say."""
        raise NotImplementedError

    def _read(self, path: str) -> bytes | None:
        """Return the bytes at a path, None if there are none; raise Damaged, Lost or OSError."""
        raise NotImplementedError

    def _write(self, path: str, parts: Sequence[bytes | memoryview]) -> None:
        """Put bytes at a path, whole or not at all; raise Lost or OSError."""
        raise NotImplementedError

    def _size(self, path: str) -> int | None:
        """Return how many bytes are at a path; None: there are none, or it cannot be told."""
        raise NotImplementedError

    def _remove(self, path: str) -> None:
        """Remove what is at a path, if anything is."""
        raise NotImplementedError

    def entries(self) -> Iterator[Entry]:
        """List the files of the store."""
        raise NotImplementedError

    def get_record(self, key: str) -> Record | None:
        """Return the record of a key; None is a miss."""
        path = path_of("record", check_hash(key))
        data = self._get(path)
        if data is not None:
            try:
                record = parse(data)
                if record.key == key:
                    self.counts.hits += 1
                    return record
                self._mark_damaged(path, "it is the record of another key")
            except OtherFormat:
                pass  # whole, and of no use here
            except ValueError as error:
                self._mark_damaged(path, str(error))
        self.counts.misses += 1
        return None

    def put_record(self, record: Record) -> None:
        """Keep a record. Its blob comes first: the record says that all is there."""
        path = path_of("record", check_hash(record.key))
        try:
            data = write_record(record)
        except ValueError as error:
            self._warn_once("record", f"does not keep a record: {error}")
            return
        if self._put(path, [data]):
            self.counts.records_written += 1

    def open_blob(self, digest: str, blob_hash: str | None = None) -> Blob | None:
        """Return the bytes kept under a digest, checked against `blob_hash`; None: a miss."""
        path = path_of("blob", check_hash(digest))
        data = self._get(path)
        if data is None or not self._is_intact(path, data, blob_hash):
            return None
        self.counts.blobs_read += 1
        return Blob(data)

    def put_blob(self, digest: str, buffers: Sequence[memoryview]) -> None:
        """Keep bytes under a digest, unless they are there."""
        path = path_of("blob", check_hash(digest))
        parts = [memoryview(buffer).cast("B") for buffer in buffers if buffer.nbytes]
        size = sum(map(len, parts))
        wanted = self.writable and (self.max_size is None or size <= self.max_size)
        if wanted and not self._has(path, size) and self._put(path, parts):
            self.counts.blobs_written += 1

    def has_blob(self, digest: str) -> bool:
        """Return whether bytes are kept under a digest, without reading them."""
        path = path_of("blob", check_hash(digest))
        return self.readable and path not in self._damaged and self._size(path) is not None

    def distrust(self, digest: str, reason: str) -> None:
        """Count a blob as damaged, because it does not decode: the next put replaces it."""
        self._mark_damaged(path_of("blob", check_hash(digest)), reason)

    def get_last(self, name: str, sort: str | None = None) -> str | None:
        """Return the key of a node's last record, of one sort or of all."""
        data = self._get(path_of("last", check_hash(name)))
        for last in read_lasts(data or b""):
            if last.name == name and sort in (None, last.sort):
                return last.key
        return None

    def put_last(self, name: str, sort: str, key: str) -> None:
        """Remember the key of a node's last record, which is of this sort."""
        path = path_of("last", check_hash(name))
        if self.writable:
            self._add(path, Last(name=name, sort=sort, key=check_hash(key)))

    def read(self, entry: Entry) -> memoryview | None:
        """Return the bytes of a file, unchecked; None: it is gone."""
        data = self._read(path_of(entry.kind, entry.name))
        return None if data is None else memoryview(data)

    def pin(self, key: str) -> None:
        """Keep what a key stands for, whatever the cap says."""
        self._put(path_of("pin", check_hash(key)), [b"{}"])

    def remove(self, entry: Entry) -> None:
        """Remove a file, if it is still there."""
        temporary = entry.kind == "temporary"
        self._remove(entry.name if temporary else path_of(entry.kind, entry.name))

    def _add(self, path: str, last: Last) -> None:
        """Put a pointer behind those at a path that still matter."""
        kept = latest_lines(self._get(path) or b"", last.name)
        self._put(path, [*kept, write_last(last)])

    def _has(self, path: str, size: int) -> bool:
        """Is a file of this size there, and not known to be damaged?"""
        return path not in self._damaged and self._size(path) == size

    def _get(self, path: str) -> bytes | None:
        """Return the bytes at a path; None: they are not there, or cannot be read."""
        if not self.readable:
            return None
        try:
            return self._read(path)
        except OSError as error:
            self._failed_to_read(path, error)
            return None

    def _put(self, path: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Put bytes at a path if possible, and return whether that worked."""
        if not self.writable or path in self._unreadable:
            return False
        try:
            self._write(path, parts)
        except Lost as error:
            self._switch_off(error)
        except IsADirectoryError as error:
            self._mark_damaged(path, str(error))
        except (OSError, MemoryError) as error:
            self._failed_to_write(path, error)
        else:
            self._damaged.discard(path)
            self._count_written(sum(map(len, parts)))
            return True
        return False

    def _is_intact(self, path: str, data: bytes | bytearray | mmap, blob_hash: str | None) -> bool:
        """Are these the bytes that a record speaks of?"""
        if blob_hash is None or hash_file(memoryview(data)) == blob_hash:
            return True
        self._mark_damaged(path, TORN)
        return False

    def _failed_to_read(self, path: str, error: OSError) -> None:
        """Make a miss of an error, and leave alone what may be whole."""
        if isinstance(error, Lost):
            self._switch_off(error)
        elif isinstance(error, Damaged):
            self._mark_damaged(path, str(error))
        else:
            self._unreadable.add(path)
            self._warn_once("unreadable", f"cannot read {path}, which is left as it is: {error}")

    def _failed_to_write(self, path: str, error: Exception) -> None:
        """Give up this file or, where the next would fail too, all writing."""
        if getattr(error, "errno", None) in _TRANSIENT or isinstance(error, MemoryError):
            self._warn_once("unwritten", f"did not keep {path}: {error!r}")
            return
        self.writable = False
        self._warn_once("off", f"can no longer be written and only gives back what it has: {error}")

    def _switch_off(self, error: Lost) -> None:
        """Work without the store from here on."""
        self.readable = self.writable = False
        self._warn_once("off", f"is out of reach, so nothing is read or kept: {error}")

    def _mark_damaged(self, path: str, reason: str) -> None:
        """Remember that an entry is bad; whoever computes its value puts a good one there."""
        if path not in self._damaged:
            self._damaged.add(path)
            self._unreadable.discard(path)
            self.counts.damaged += 1
        self._warn_once(
            "damaged",
            f"has a damaged file, {path}: {reason}. Its value is computed again; "
            "`soma cache verify` lists all such files",
        )

    def _warn_once(self, topic: str, message: str) -> None:
        """Warn, once for each topic."""
        if topic not in self._warned:
            self._warned.add(topic)
            warn(f"the cache at {self.place} {message}.", CacheWarning, stacklevel=3)

    def _count_written(self, size: int) -> None:
        """Count bytes written, and now and then collect what is over the cap."""
        self.counts.bytes_written += size
        if self.max_size is None:
            return
        self._since_collection += size
        if self._since_collection < self._collect_every:
            return
        try:
            done = gc(self, self.max_size, down_to=self.max_size * 9 // 10)
        except OSError:
            return
        self._since_collection = 0
        self._collect_every = max(1, self.max_size // 64, (self.max_size - done.left) // 16)
        self.counts.collected += done.removed

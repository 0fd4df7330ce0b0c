"""A store for the life of a process: bytes in a dictionary."""

import time
from collections.abc import Iterator, Sequence
from mmap import mmap

from soma.cache._base_store import BaseStore
from soma.cache._layout import kind_and_name, path_of
from soma.cache._record import Record
from soma.cache._store import Entry

__all__ = ["MemoryStore"]


class MemoryStore(BaseStore):
    """Keeps copies of bytes, so nobody who writes to a value writes to the cache.

    >>> store = MemoryStore()
    >>> digest = "0" * 64
    >>> store.put_blob(digest, [memoryview(b"abc")])
    >>> bytes(store.open_blob(digest).buffer)
    b'abc'
    """

    def __init__(self, *, max_size: int | None = None) -> None:
        super().__init__(max_size=max_size)
        self._data: dict[str, bytes] = {}
        self._used: dict[str, float] = {}
        self._decoded: dict[str, tuple[bytes, Record]] = {}  # with what it was in

    @property
    def place(self) -> str:
        """Where the store is, as its user would say."""
        return "memory"

    def get_record(self, key: str) -> Record | None:
        """Return the record of a key, decoded once; None is a miss."""
        path = path_of("record", key)
        data, known = self._data.get(path), self._decoded.get(path)
        if known is not None and known[0] is data:
            self._used[path] = time.time()
            self.counts.hits += 1
            return known[1]
        record = super().get_record(key)
        if record is not None and data is not None:
            self._decoded[path] = (data, record)
        return record

    def entries(self) -> Iterator[Entry]:
        """List what is kept."""
        for path, data in list(self._data.items()):
            if found := kind_and_name(path):
                yield Entry(*found, len(data), self._used.get(path, 0.0))

    def _read(self, path: str) -> bytes | None:
        data = self._data.get(path)
        if data is not None:
            self._used[path] = time.time()
        return data

    def _write(self, path: str, parts: Sequence[bytes | memoryview]) -> None:
        self._used[path] = time.time()
        self._data[path] = b"".join(parts)

    def _size(self, path: str) -> int | None:
        data = self._data.get(path)
        return None if data is None else len(data)

    def _remove(self, path: str) -> None:
        self._data.pop(path, None)
        self._used.pop(path, None)
        self._decoded.pop(path, None)

    def _is_intact(self, path: str, data: bytes | bytearray | mmap, blob_hash: str | None) -> bool:
        return True  # nobody else writes here

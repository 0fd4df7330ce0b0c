"""What a store is: records and blobs, put and found by name. The engine knows no more.

Three of them follow: `_memory_store.py`, `_file_store.py` and `_object_store.py`. What they
share is in `_base_store.py`.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from mmap import mmap
from typing import Literal, Protocol, runtime_checkable

from soma.cache._record import Record

__all__ = [
    "Blob",
    "Counts",
    "Damaged",
    "Entry",
    "Kind",
    "Lost",
    "Store",
]

Kind = Literal["record", "blob", "last", "pin", "temporary"]


class Damaged(OSError):
    """What stands under a name is not what was put there."""


class Lost(OSError):
    """The store itself is out of reach: each further call would cost another wait."""


class Blob:
    """The bytes of a stored value: a view that is good until `close`.

    A buffer that may be written to is the caller's own. `mapped` bytes are pages of the file,
    read when touched; who writes to them changes a copy.
    """

    __slots__ = ("_map", "buffer")

    def __init__(self, data: bytes | bytearray | mmap) -> None:
        self.buffer = memoryview(data)
        self._map = data if isinstance(data, mmap) else None

    @property
    def mapped(self) -> bool:
        """Are these pages of a file?"""
        return self._map is not None

    def close(self) -> None:
        """Let go of the bytes; arrays that look at them keep them for as long as they live."""
        with suppress(BufferError):
            self.buffer.release()
            if self._map is not None:
                self._map.close()
        self._map = None

    def __enter__(self) -> "Blob":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@dataclass(slots=True)
class Counts:
    """What a store has done in this process."""

    hits: int = 0  # records asked for and found
    misses: int = 0
    blobs_read: int = 0
    records_written: int = 0
    blobs_written: int = 0
    bytes_written: int = 0
    damaged: int = 0
    collected: int = 0  # files removed to stay below the cap


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a store. `used` only orders them by age: clocks may jump."""

    kind: Kind
    name: str  # a key or digest; the path below the root of a temporary file
    size: int
    used: float


@runtime_checkable
class Store(Protocol):
    """Keeps records by key and blobs by digest; only a name that is no hash raises."""

    counts: Counts
    writable: bool  # False: nothing is kept any more, so nothing need be encoded

    @property
    def place(self) -> str:
        """Where the store is, as its user would say."""
        ...

    def get_record(self, key: str) -> Record | None:
        """Return the record of a key; None is a miss."""
        ...

    def put_record(self, record: Record) -> None:
        """Keep a record. Its blob comes first: the record says that all is there."""
        ...

    def open_blob(self, digest: str, blob_hash: str | None = None) -> Blob | None:
        """Return the bytes kept under a digest, checked against `blob_hash` once; None: a miss."""
        ...

    def put_blob(self, digest: str, buffers: Sequence[memoryview]) -> None:
        """Keep bytes under a digest, unless they are there."""
        ...

    def has_blob(self, digest: str) -> bool:
        """Return whether bytes are kept under a digest, without reading them."""
        ...

    def distrust(self, digest: str, reason: str) -> None:
        """Count a blob as damaged, because it does not decode: the next put replaces it."""
        ...

    def get_last(self, name: str, sort: str | None = None) -> str | None:
        """Return the key of a node's last record, of one sort or of all."""
        ...

    def put_last(self, name: str, sort: str, key: str) -> None:
        """Remember the key of a node's last record, which is of this sort.

        Args:
            name: a digest that stands for the node.
            sort: what is told apart at one node, as a short text; a few are remembered.
        """
        ...

    def entries(self) -> Iterator[Entry]:
        """List the files of the store, for its upkeep."""
        ...

    def read(self, entry: Entry) -> memoryview | None:
        """Return the bytes of a file, unchecked; None: it is gone.

        Raises:
            OSError: they cannot be read; the message says why.
        """
        ...

    def pin(self, key: str) -> None:
        """Keep what a key stands for, whatever the cap says."""
        ...

    def remove(self, entry: Entry) -> None:
        """Remove a file, if it is still there."""
        ...

"""Hashes bytes with BLAKE3, large ones on several threads."""

import os
from threading import Lock

from blake3 import blake3

from soma.cache._parts import Buffer

THREADED_FROM = 16_000_000  # bytes; on a busy machine, waking threads takes longer than fewer do
THREADS = min(4, os.cpu_count() or 1)


class _ThreadedHasher:
    """A hasher with threads of its own, for one caller at a time."""

    __slots__ = ("hasher", "lock")

    def __init__(self) -> None:
        self.hasher = blake3(max_threads=THREADS)
        self.lock = Lock()


# By process: a forked child has none of its parent's threads, and would wait for them for ever.
# Its copy of the parent's hasher stays here, since even dropping that one would wait.
_hashers: dict[int, _ThreadedHasher] = {}


def hash_bytes(data: Buffer) -> bytes:
    """Return the hash of some bytes, 32 bytes that do not depend on the number of threads."""
    if len(data) < THREADED_FROM or THREADS == 1:
        return blake3(data).digest()
    process = os.getpid()
    threaded = _hashers.get(process) or _hashers.setdefault(process, _ThreadedHasher())
    if not threaded.lock.acquire(blocking=False):
        return blake3(data).digest()
    try:
        threaded.hasher.reset()
        threaded.hasher.update(data)
        return threaded.hasher.digest()
    finally:
        threaded.lock.release()

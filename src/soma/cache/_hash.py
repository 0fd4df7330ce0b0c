"""Hashes bytes: large ones on a few threads, which a forked child makes anew."""

import os
from threading import Lock

from blake3 import blake3

from soma.cache._parts import Buffer

MANY = 16_000_000  # bytes; for fewer, a busy machine wakes threads later than one is done
CREW = min(4, os.cpu_count() or 1)


class _Crew:
    """A hasher with threads of its own, for one caller at a time."""

    __slots__ = ("hasher", "lock")

    def __init__(self) -> None:
        self.hasher = blake3(max_threads=CREW)
        self.lock = Lock()


# By process: a child would wait for ever for threads, and locks, that its parent had. Those of
# the parent stay here, since even ending them would wait.
_crews: dict[int, _Crew] = {}


def hash_bytes(data: Buffer) -> bytes:
    """Return the 32 bytes of a hash, whatever the number of threads."""
    if len(data) < MANY or CREW == 1:
        return blake3(data).digest()
    process = os.getpid()
    crew = _crews.get(process) or _crews.setdefault(process, _Crew())
    if not crew.lock.acquire(blocking=False):
        return blake3(data).digest()
    try:
        crew.hasher.reset()
        crew.hasher.update(data)
        return crew.hasher.digest()
    finally:
        crew.lock.release()

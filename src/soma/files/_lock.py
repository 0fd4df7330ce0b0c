"""A lock that the system drops when its process ends, however it ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


# No link is followed: the folder of the lock may come from elsewhere.
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def locked(path: str) -> Iterator[bool]:
    """Try to hold a lock inside, and say whether it was had; nobody waits.

    Args:
        path: of a file that is there for this alone, and made where it is missing.
    """
    descriptor = os.open(path, _OPEN, 0o600)
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

"""The one way a file grows: a line at a time, each by one call to the system.

A line whose `append` has returned is in the hands of the system, and survives the death of the
process. Others may append to the same file and read it at any time.
"""

import os
import threading
from types import TracebackType
from typing import Self

_GROW = (
    os.O_RDWR
    | os.O_CREAT
    | os.O_APPEND
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOFOLLOW", 0)  # a run from elsewhere may hold a link to a file of the user
)


class Appender:
    """A file that lines are added to, from any thread and after a fork.

    Args:
        path: made for its owner alone where it does not exist; its folder does.
        durable: return from `append` only when the line is on the disk.
    """

    def __init__(self, path: str, *, durable: bool = False) -> None:
        self._durable = durable
        self._closed = False
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._descriptor = os.open(path, _GROW, 0o600)
        self._torn = self._ends_torn()

    def append(self, line: bytes) -> None:
        """Add one line, which holds no line break itself.

        Raises:
            OSError: the system does not take it, as when the disk is full.
        """
        if b"\n" in line:
            raise ValueError(f"{line[:80]!r} holds a line break; one line at a time is wanted.")
        with self._own_lock():
            if self._closed:
                raise ValueError("this file is closed; nothing can be added to it.")
            # After half a line, one that was cut off in the middle, begins a new one.
            data = b"\n" + line + b"\n" if self._torn else line + b"\n"
            self._torn = True
            written = os.write(self._descriptor, data)
            while written < len(data):  # a full disk takes a part first, then says why
                written += os.write(self._descriptor, data[written:])
            self._torn = False
            if self._durable:
                os.fsync(self._descriptor)

    def close(self, *, durable: bool = False) -> None:
        """Take no more lines; `durable` brings those that came to the disk. Twice is once."""
        with self._own_lock():
            if self._closed:
                return
            self._closed = True
            try:
                if durable:
                    os.fsync(self._descriptor)
            finally:
                os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _own_lock(self) -> threading.Lock:
        # In a forked child, a thread that does not exist there may hold the lock for ever.
        if self._process != os.getpid():
            self._lock, self._process = threading.Lock(), os.getpid()
        return self._lock

    def _ends_torn(self) -> bool:
        size = os.lseek(self._descriptor, 0, os.SEEK_END)
        if size == 0:
            return False
        os.lseek(self._descriptor, -1, os.SEEK_END)
        return os.read(self._descriptor, 1) != b"\n"

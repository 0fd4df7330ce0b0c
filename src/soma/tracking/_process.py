"""Which process wrote a status, and whether it is still there."""

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """A process, told apart from every other one that may get its number."""

    pid: int
    started: str | None  # as the system counts it; None where it does not tell
    host: str
    space: str | None  # the boot and the space that its pid is a number of

    @classmethod
    def own(cls) -> Self:
        """Return the mark of this process."""
        pid = os.getpid()
        return cls(pid=pid, started=_started(pid), host=socket.gethostname(), space=_space())


def is_here(mark: ProcessMark) -> bool:
    """Whether `mark` is of this machine, so that `is_gone` can be asked."""
    # On Windows asking for a process by its number ends it.
    return mark.host == socket.gethostname() and mark.space == _space() and os.name != "nt"


def is_gone(mark: ProcessMark) -> bool:
    """Whether a process of this machine has ended, also where another one has its number."""
    if mark.pid <= 0:
        return True
    if sys.platform == "linux":
        started = _started(mark.pid)
        return started is None or (mark.started is not None and started != mark.started)
    try:
        os.kill(mark.pid, 0)
    except PermissionError:  # it is there, and another user's
        return False
    except (OSError, OverflowError):
        return True
    return False


def _started(pid: int) -> str | None:
    """Return when a process began, in ticks since the boot; None if there is none, or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    return None if len(fields) < 20 or fields[0] in "ZX" else fields[19]


def _space() -> str | None:
    # Containers may share a host name and not their processes.
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None

"""The one connection that a program has, made when it is first needed, and how to make the next.

torch allows one group a process. After a worker was lost, another connection takes the place of
the one that has lost it.
"""

import atexit
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock

from soma.core import checked_target
from soma.distributed import _context
from soma.distributed._connection import Connection
from soma.distributed._meeting import Meeting
from soma.errors import WorkerUnavailable, listing

_LOCK = RLock()


class _Current:
    """The connection of this process, and how the next one is made."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.timeout = 60.0
        self.meeting: Meeting | None = None
        self.addresses: Mapping[str, str] = {}


_CURRENT = _Current()


def connect(
    *workers: str,
    timeout: float | None = None,
    folder: "str | os.PathLike[str] | None" = None,
    addresses: Mapping[str, str] | None = None,
) -> None:
    """Connect this program to workers, or set how it does when a graph first needs them.

    A graph with placed filters connects to its own workers by itself; call this first where
    several graphs share a program, or to wait longer than 60 s.

    Args:
        workers: their names; all that is not named is left out.
        timeout: seconds that each call may take.
        folder: where workers are met, by default `$SOMA_WORKERS_DIR`, or one of this user.
        addresses: `HOST:PORT` of those on other machines, by name. This program then listens at
            the address by which it reaches them, where whoever gets there can run code.

    Raises:
        WorkerUnavailable: there is no such worker.
        WorkerMismatch: a worker has other versions of Python, torch or soma.
    """
    with _LOCK:
        disconnect()
        if timeout is not None:
            _CURRENT.timeout = timeout
        if folder is not None:
            _CURRENT.meeting = Meeting(folder)
        if addresses is not None:
            _CURRENT.addresses = {checked_target(name): one for name, one in addresses.items()}
        if workers:
            connection_to(workers, renew=True)


@contextmanager
def kept_settings() -> Iterator[None]:
    """Let connections be of this `with` alone, with their folder and their time limit."""
    before = _CURRENT.timeout, _CURRENT.meeting, _CURRENT.addresses
    try:
        yield
    finally:
        disconnect()
        _CURRENT.timeout, _CURRENT.meeting, _CURRENT.addresses = before


def disconnect() -> None:
    """Let the workers go, with all that they hold."""
    with _LOCK:
        connection, _CURRENT.connection = _CURRENT.connection, None
        if connection is not None and not connection.is_inherited():
            _context.close()
            connection.close()


def connection_to(workers: Sequence[str], *, renew: bool) -> Connection:
    """Return the connection to these workers, made where there is none.

    Args:
        renew: make another one where it has lost a worker.

    Raises:
        WorkerUnavailable: a worker is not there, or the program is connected to others.
    """
    with _LOCK:
        current = _CURRENT.connection
        if current is not None and current.is_inherited():
            current.check(current.names[0])
        if current is not None and current.lost is not None and renew:
            disconnect()
            current = None
        if current is None:
            names = dict.fromkeys(map(checked_target, workers))
            meeting = _CURRENT.meeting or Meeting()
            current = Connection([*names], meeting, _CURRENT.timeout, _CURRENT.addresses)
            _CURRENT.connection = current
        missing = [one for one in workers if one not in current.names]
        if missing:
            raise WorkerUnavailable(
                f"this program is connected to {listing(current.names)} and not to "
                f"{listing(missing)}; torch lets nobody join later. Name all of them before the "
                "first graph is built: `soma.distributed.connect("
                f"{', '.join(map(repr, [*current.names, *missing]))})`. To do so now lets go of "
                "what is held there; keep it by `g.state()` first."
            )
        return current


def current_connection() -> Connection | None:
    """Return the connection of this process, if there is one."""
    return _CURRENT.connection


atexit.register(disconnect)

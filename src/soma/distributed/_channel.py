"""A line between two machines over which a program asks a worker, before torch's RPC carries all.

Both sides prove that they know one token before either reads a record of the other. The proof and
the framing are those of `multiprocessing.connection`; what goes over it is JSON.
"""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import msgspec

from soma.distributed._records import MOST
from soma.errors import WorkerUnavailable
from soma.files import write_atomically

_SHAKE_SECONDS = 10  # that the other side may take for each part of its proof
_SHORTEST = 32  # characters of a token
_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}  # seconds, seconds, times
_Record = TypeVar("_Record", bound=msgspec.Struct)


class Channel:
    """One side of the line, once both have proved that they know the token."""

    def __init__(self, connection: "Connection[bytes, bytes]") -> None:
        self._connection = connection

    def send(self, record: msgspec.Struct) -> None:
        """Send one record.

        Raises:
            OSError: the other side is gone.
        """
        self._connection.send_bytes(msgspec.json.encode(record))

    def receive(self, kind: type[_Record], seconds: float) -> _Record | None:
        """Return a record of a kind, or None where none comes within some seconds.

        Raises:
            OSError: the other side is gone, or sends something else.
        """
        if not self._connection.poll(seconds):
            return None
        try:
            return msgspec.json.decode(self._connection.recv_bytes(MOST), type=kind)
        except (EOFError, msgspec.MsgspecError) as error:
            raise ConnectionError(str(error) or "it has hung up") from error

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def opened(peer: socket.socket, token: bytes, *, asks: bool) -> Channel:
    """Return a channel over a connected socket, which is the channel's from now on.

    Args:
        peer: the socket.
        token: what both sides have to know.
        asks: whether this side asks for the first proof; the other one does not.

    Raises:
        OSError: the other side does not know the token, is gone, or says nothing.
    """
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        peer.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", _SHAKE_SECONDS, 0))
    # A machine that loses its power says no farewell: after half a minute it counts as gone.
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE.items():
        if hasattr(socket, name):  # not all systems have all of them
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    connection: Connection[bytes, bytes] = Connection(peer.detach())
    proofs = [deliver_challenge, answer_challenge]
    try:
        for proof in proofs if asks else reversed(proofs):
            proof(connection, token)
    except (AuthenticationError, EOFError, OSError, ValueError, AssertionError) as error:
        connection.close()
        raise ConnectionError(f"it does not know the token ({type(error).__name__})") from error
    return Channel(connection)


def token(folder: Path, *, makes: bool) -> bytes:
    """Return the token of a workers' folder: `$SOMA_WORKERS_TOKEN`, or its file `token`.

    Args:
        folder: of the worker, or of the program on its own machine.
        makes: make one where there is none.

    Raises:
        WorkerUnavailable: there is none, or one that can be guessed.
    """
    path = folder / "token"
    given = os.environ.get("SOMA_WORKERS_TOKEN")
    if given is None and makes and not path.exists():
        write_atomically(str(path), [token_hex(32).encode()])
    try:
        found = (path.read_text(encoding="ascii") if given is None else given).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise WorkerUnavailable(
            f"a worker at an address is asked with its token, and {path} has none. Copy that file "
            "from the worker's machine, or set $SOMA_WORKERS_TOKEN to what it holds."
        ) from error
    if len(found) < _SHORTEST:
        raise WorkerUnavailable(
            f"the token of {'$SOMA_WORKERS_TOKEN' if given else path} has {len(found)} characters; "
            f"{_SHORTEST} at least are wanted. `soma worker --address HOST:PORT` makes one in its "
            "folder."
        )
    return found.encode()


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen at one address of this machine inside.

    Raises:
        WorkerUnavailable: it cannot be listened at.
    """
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        raise WorkerUnavailable(
            f"cannot listen at {host}:{port}: {error.strerror or error}. Name an address of this "
            "machine and a free port."
        ) from error
    with listener:
        try:
            yield listener
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits at it

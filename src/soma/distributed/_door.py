"""A worker's door to other machines: programs that know its token come in and are met here.

For each of them a thread does in the worker's own folder what a program on this machine would do,
so the worker and its sessions need not know where a program is.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread

import msgspec

from soma.distributed._channel import Channel, listening, opened, token
from soma.distributed._interface import host_and_port, interface_of
from soma.distributed._meeting import Meeting
from soma.distributed._records import Answered, Request
from soma.errors import SomaError

_LOOK_SECONDS = 0.05
_ASK_SECONDS = 30.0  # that a program may take to ask, once it is in


@dataclass(frozen=True, slots=True)
class _Door:
    """What a thread that takes a program in has to know."""

    name: str  # of the worker
    secret: bytes  # its token
    interface: str  # on which its sessions listen
    meeting: Meeting
    told: Callable[[str], object]


@contextmanager
def open_door(
    name: str, address: str, meeting: Meeting, told: Callable[[str], object]
) -> Iterator[None]:
    """Let programs on other machines ask a worker inside.

    Args:
        name: of the worker, which is present in its meeting.
        address: where to listen: `HOST:PORT`, with an address of this machine.
        meeting: the worker's own.
        told: gets a line for people.

    Raises:
        WorkerUnavailable: the address is none of this machine, or taken.
    """
    host, port = host_and_port(address)
    interface = interface_of(host)
    door = _Door(name, token(meeting.folder, makes=True), interface, meeting, told)
    with listening(host, port) as listener:
        Thread(target=_take_in, args=(door, listener), daemon=True).start()
        told(f"worker {name} listens at {address}; its token is in {meeting.folder / 'token'}")
        yield


def _take_in(door: _Door, listener: socket.socket) -> None:
    while True:
        try:
            peer, (host, *_) = listener.accept()
        except OSError:  # the door is closed, or this process can take nobody in for now
            if listener.fileno() < 0:
                return
            time.sleep(_LOOK_SECONDS)
            continue
        Thread(target=_receive, args=(door, peer, host), daemon=True).start()


def _receive(door: _Door, peer: socket.socket, host: str) -> None:
    try:
        channel = opened(peer, door.secret, asks=True)
    except OSError as error:
        door.told(f"{host} was not let in: {error}")
        return
    try:
        _meet(door, channel)
    except (OSError, SomaError) as error:
        door.told(f"{host} is gone: {error}")
    finally:
        channel.close()


def _meet(door: _Door, channel: Channel) -> None:
    """Ask the worker for a program, and hold the session until that hangs up."""
    card = next((one for one in door.meeting.cards() if one.name == door.name), None)
    if card is None:  # it ends
        return
    channel.send(card)
    request = channel.receive(Request, _ASK_SECONDS)
    if request is None:
        return
    with door.meeting.opened() as session:
        asked = msgspec.structs.replace(request, session=session, interface=door.interface)
        door.meeting.ask(door.name, asked)
        while (refusal := door.meeting.answered(session, door.name)) is None:
            channel.receive(Answered, 0.0)  # an error where the program is gone
            time.sleep(_LOOK_SECONDS)
        channel.send(Answered(refusal))
        with suppress(ConnectionError):  # as every session ends
            while True:
                channel.receive(Answered, _ASK_SECONDS)

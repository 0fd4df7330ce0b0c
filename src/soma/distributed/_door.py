"""A worker's door to other machines: programs that know its token come in and are met here.

For each of them a thread does in the worker's own folder what a program on this machine would do,
so the worker and its sessions need not know where a program is.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import msgspec

from soma.distributed._channel import Channel, listening, opened, token
from soma.distributed._interface import host_and_port, interface_of
from soma.distributed._meeting import Answered, Meeting, Request
from soma.errors import SomaError

_LOOK_SECONDS = 0.05
_ASK_SECONDS = 30.0  # that a program may take to ask, once it is in


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
    interface, secret = interface_of(host), token(meeting.folder, makes=True)
    with listening(host, port) as listener:
        given = (listener, name, secret, interface, meeting, told)
        Thread(target=_open, args=given, daemon=True).start()
        told(f"worker {name} listens at {address}; its token is in {meeting.folder / 'token'}")
        yield


def _open(
    listener: socket.socket,
    name: str,
    secret: bytes,
    interface: str,
    meeting: Meeting,
    told: Callable[[str], object],
) -> None:
    while True:
        try:
            peer, (host, *_) = listener.accept()
        except OSError:  # the door is closed, or this process can take nobody in for now
            if listener.fileno() < 0:
                return
            time.sleep(_LOOK_SECONDS)
            continue
        given = (peer, host, name, secret, interface, meeting, told)
        Thread(target=_receive, args=given, daemon=True).start()


def _receive(
    peer: socket.socket,
    host: str,
    name: str,
    secret: bytes,
    interface: str,
    meeting: Meeting,
    told: Callable[[str], object],
) -> None:
    try:
        channel = opened(peer, secret, asks=True)
    except OSError as error:
        told(f"{host} was not let in: {error}")
        return
    try:
        _meet(channel, name, interface, meeting)
    except (OSError, SomaError) as error:
        told(f"{host} is gone: {error}")
    finally:
        channel.close()


def _meet(channel: Channel, name: str, interface: str, meeting: Meeting) -> None:
    """Ask the worker for a program, and hold the session until that hangs up."""
    card = next((one for one in meeting.cards() if one.name == name), None)
    if card is None:  # it ends
        return
    channel.send(card)
    request = channel.receive(Request, _ASK_SECONDS)
    if request is None:
        return
    with meeting.opened() as session:
        asked = msgspec.structs.replace(request, session=session, interface=interface)
        meeting.ask(name, asked)
        while (refusal := meeting.answered(session, name)) is None:
            _see_that_it_lives(channel)
            time.sleep(_LOOK_SECONDS)
        channel.send(Answered(refusal))
        with suppress(ConnectionError):  # as every session ends
            while True:
                channel.receive(Answered, _ASK_SECONDS)


def _see_that_it_lives(channel: Channel) -> None:
    channel.receive(Answered, 0.0)

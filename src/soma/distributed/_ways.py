"""How a program gets to a worker: in the folder of its machine, or at an address of another."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

from soma.distributed._channel import Channel, opened, token
from soma.distributed._interface import LOOPBACK, host_and_port, interface_of
from soma.distributed._meeting import Meeting
from soma.distributed._records import Answered, Card, Request
from soma.errors import WorkerUnavailable, did_you_mean, listing

_SECONDS = 10.0  # that a machine has to answer


class Way(Protocol):
    """A way to one worker."""

    card: Card

    @property
    def interface(self) -> str:
        """The interface of this machine on which the worker reaches it."""

    @property
    def host(self) -> str | None:
        """The address of this machine there; None where both are on one."""

    def ask(self, request: Request) -> None:
        """Leave a request with the worker."""

    def answered(self, session: str) -> str | None:
        """Return `""` when the worker is ready, its refusal, or None before it has answered."""

    def lives(self) -> bool:
        """Whether the worker is there."""


class Near:
    """A worker of the folder."""

    host = None
    interface = LOOPBACK

    def __init__(self, card: Card, meeting: Meeting) -> None:
        self.card = card
        self._meeting = meeting

    def ask(self, request: Request) -> None:
        """Leave a request with the worker."""
        self._meeting.ask(self.card.name, request)

    def answered(self, session: str) -> str | None:
        """Return `""` when the worker is ready, its refusal, or None before it has answered."""
        return self._meeting.answered(session, self.card.name)

    def lives(self) -> bool:
        """Whether the worker is there."""
        return self._meeting.lives(self.card.name)


class Far:
    """A worker at an address; while its channel is open, it knows that this program lives."""

    def __init__(self, card: Card, channel: Channel, host: str) -> None:
        self.card = card
        self.host = host
        self.interface = interface_of(host)
        self._channel = channel
        self._lives = True

    def ask(self, request: Request) -> None:
        """Leave a request with the worker."""
        self._channel.send(request)

    def answered(self, session: str) -> str | None:
        """Return `""` when the worker is ready, its refusal, or None before it has answered."""
        try:
            answer = self._channel.receive(Answered, 0.0)
        except OSError:
            self._lives = False
            return None
        return None if answer is None else answer.refusal

    def lives(self) -> bool:
        """Whether the worker is there."""
        return self._lives


@contextmanager
def ways_to(
    names: Sequence[str], addresses: Mapping[str, str], meeting: Meeting
) -> Iterator[list[Way]]:
    """Give the ways to workers, which are open inside.

    Raises:
        WorkerUnavailable: one is not there, or does not let this program in.
    """
    here = [name for name in names if name not in addresses]
    cards = {card.name: card for card in meeting.cards()} if here else {}
    missing = [name for name in here if name not in cards]
    if missing:
        there = listing(cards) or "no worker"
        raise WorkerUnavailable(
            f"no worker {listing(missing)} in {meeting.folder}; there is {there}."
            f"{did_you_mean(missing[0], cards)} Start it: `soma worker --name {missing[0]}`. One "
            "on another machine has an address: `soma.distributed.connect(addresses=...)`."
        )
    with ExitStack() as stack:
        ways: list[Way] = []
        for name in names:
            if name in cards:
                ways.append(Near(cards[name], meeting))
            else:
                ways.append(stack.enter_context(_far(name, addresses[name], meeting)))
        yield ways


@contextmanager
def _far(name: str, address: str, meeting: Meeting) -> Iterator[Far]:
    host, port = host_and_port(address)
    secret = token(meeting.folder, makes=False)
    try:
        peer = socket.create_connection((host, port), timeout=_SECONDS)
        peer.settimeout(None)
        own: str = peer.getsockname()[0]
        channel = opened(peer, secret, asks=False)
    except OSError as error:
        raise WorkerUnavailable(
            f"no worker lets this program in at {address}: {error}. Start it there: `soma worker "
            f"--name {name} --address {address}`; both sides need one token, from the file `token` "
            "of the worker's folder."
        ) from error
    try:
        card = channel.receive(Card, _SECONDS)
        if card is None or card.name != name:
            called = "says nothing" if card is None else f"is called `{card.name}`"
            raise WorkerUnavailable(f"the worker at {address} {called}; `{name}` was wanted there.")
        yield Far(card, channel, own)
    finally:
        channel.close()

"""A program's connection to workers: calls with a time limit, and errors that name the worker.

torch allows one group a process, so a program has one connection at a time. It is made when
it is first needed, and again after a worker was lost.
"""

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

import torch.distributed.rpc as rpc

from soma.core import NodeId, checked_target
from soma.distributed import _context, _faults, _group, _host
from soma.distributed._interface import LOOPBACK
from soma.distributed._meeting import Card, Meeting, Request, versions
from soma.distributed._messages import Failure
from soma.distributed._ways import Way, ways_to
from soma.errors import (
    WorkerLost,
    WorkerMismatch,
    WorkerTimeout,
    WorkerUnavailable,
    listing,
)

_CLIENT = ":client"  # which no worker can be called
_PING_SECONDS = 2.0
_BEGIN_SECONDS = 60.0  # that a worker has to start a process, which imports torch
_LOOK_SECONDS = 0.02
_LOCK = RLock()
Future = Any  # torch has no type for one that an answer of any kind is waited for with


class Connection:
    """What holds the workers of one session."""

    def __init__(
        self,
        names: Sequence[str],
        meeting: Meeting,
        timeout: float,
        addresses: Mapping[str, str],
    ) -> None:
        self.names = tuple(names)
        self.timeout = timeout
        self.process = os.getpid()
        self.lost: str | None = None  # why nothing can be asked any more
        self._stack = ExitStack()
        with ExitStack() as stack:
            self.session = stack.enter_context(meeting.opened())
            ways = stack.enter_context(ways_to(self.names, addresses, meeting))
            self._meet(ways, meeting)
            stack.callback(_group.leave)
            self._stack = stack.pop_all()

    def call(
        self, worker: str, function: Callable[..., Any], *args: object, node: NodeId | None = None
    ) -> Any:
        """Return what a function of `_host` answers on a worker.

        Raises:
            WorkerLost: the worker is gone, or gave no answer in time.
            RemoteFailure: the function raised there.
        """
        return self.result(self.begin(worker, function, *args, node=node), worker, node)

    def begin(
        self, worker: str, function: Callable[..., Any], *args: object, node: NodeId | None = None
    ) -> Future:
        """Start a call; `result` waits for it."""
        self.check(worker, node)
        try:
            return rpc.rpc_async(self._address(worker), function, args, timeout=self.timeout)
        except RuntimeError as error:
            raise self.explained(error, worker, node) from error
        except Exception as error:
            raise _faults.not_sent(error, worker, node) from error

    def check(self, worker: str, node: NodeId | None = None) -> None:
        """Raise `WorkerLost` where nothing can be asked any more."""
        if self.is_inherited():
            self.lost = (
                "this process was forked from the program that is connected, and torch's RPC stays "
                'there; processes that `multiprocessing` begins with "spawn" have their own'
            )
        if self.lost is not None:
            raise _faults.out_of_reach(worker, node, self.lost)

    def result(self, future: Future, worker: str, node: NodeId | None = None) -> Any:
        """Return the answer of a call that was started."""
        try:
            answer = future.wait()
        except Exception as error:
            raise self.explained(error, worker, node) from error
        if isinstance(answer, Failure):
            raise _faults.failed(answer, worker, node)
        return answer

    def explained(self, error: Exception, worker: str, node: NodeId | None) -> Exception:
        """Return the error to raise for one of torch's."""
        if _faults.is_timeout(error):
            self.lost = f"{worker} gave no answer in time"
            return _faults.timeout([worker], node, self.timeout)
        if isinstance(error, RuntimeError) and not self._answers(worker):
            self.lost = f"{worker} was lost"
            return _faults.lost(worker, node)
        return _faults.raised(error, worker, node)

    def explained_of_several(self, error: Exception, nodes: Mapping[str, NodeId]) -> Exception:
        """Return the error to raise for one of a backward, in which any worker took part.

        Args:
            nodes: of each worker one that may be named.
        """
        worker, rank = self.silent(), _faults.rank(error)
        if worker is None and not rank and _faults.is_timeout(error):
            self.lost = "a worker gave no answer in time"
            return _faults.timeout([*nodes], None, self.timeout)
        worker = worker or self.names[(rank or 1) - 1]
        return self.explained(error, worker, nodes.get(worker))

    def silent(self) -> str | None:
        """Return the first worker that does not answer; None where all do."""
        worker = next((one for one in self.names if not self._answers(one)), None)
        if worker is not None and self.lost is None:
            self.lost = f"{worker} was lost"
        return worker

    def is_inherited(self) -> bool:
        """Whether it is that of another process, from which this one was forked."""
        return os.getpid() != self.process

    def close(self) -> None:
        """Let the workers go; each ends its session when it sees that this one is over."""
        self.lost = "the program has let its workers go"
        if not self.is_inherited():
            self._stack.close()

    def forget(self, graphs: tuple[int, ...]) -> None:
        """Have workers drop what they hold of graphs that are no more; nobody waits for it."""
        for name in self.names:
            with suppress(WorkerLost):
                self.begin(name, _host.forget, graphs)

    def _answers(self, worker: str) -> bool:
        try:
            rpc.rpc_sync(self._address(worker), _host.ping, timeout=_PING_SECONDS)
        except RuntimeError:
            return False
        return True

    def _address(self, worker: str) -> str:
        return _group.address(worker, self.session)

    def _meet(self, ways: Sequence[Way], meeting: Meeting) -> None:
        """Ask every worker, wait until all are ready, and join the group with them."""
        for way in ways:
            _check_versions(way.card)
        far = next((way for way in ways if way.host is not None), None)
        with ExitStack() as stack:
            rendezvous = meeting.rendezvous(self.session)
            if far is not None and far.host is not None:
                rendezvous = stack.enter_context(_group.meeting_point(far.host))
            requests = [
                Request(
                    session=self.session,
                    group=self.session,
                    rank=rank,
                    size=len(self.names) + 1,
                    number=_group.number(),
                    timeout=self.timeout,
                    versions=versions(),
                    interface=LOOPBACK if far is None else far.interface,
                    rendezvous=rendezvous,
                    import_path=tuple(str(Path(one).absolute()) for one in sys.path),
                    main=_main_script(),
                )
                for rank in range(len(self.names) + 1)
            ]
            for way, request in zip(ways, requests[1:], strict=True):
                way.ask(request)
            self._wait(ways)
            try:
                _group.join(_CLIENT, requests[0])
            except RuntimeError as error:
                raise WorkerLost(
                    f"{listing(self.names)} began a session, and did not all join it within "
                    f"{self.timeout:g} s: {str(error).partition(chr(10))[0]}"
                ) from error

    def _wait(self, ways: Sequence[Way]) -> None:
        """Come back when every worker is ready."""
        deadline = time.monotonic() + _BEGIN_SECONDS
        for way in ways:
            name = way.card.name
            while (refusal := way.answered(self.session)) is None:
                if not way.lives():
                    raise WorkerUnavailable(f"{name} ended while it was asked to begin a session.")
                if time.monotonic() > deadline:
                    raise WorkerTimeout(f"{name} began no session within {_BEGIN_SECONDS:g} s.")
                time.sleep(_LOOK_SECONDS)
            if refusal:
                raise WorkerMismatch(
                    f"{name} refuses: {refusal.rstrip('.')}. Python, torch and soma have to be the "
                    "same on all sides, and the classes of placed filters importable there."
                )


class _Present:
    """The connection of this process, and how the next one is made."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.timeout = 60.0
        self.meeting: Meeting | None = None
        self.addresses: Mapping[str, str] = {}


_PRESENT = _Present()


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
            _PRESENT.timeout = timeout
        if folder is not None:
            _PRESENT.meeting = Meeting(folder)
        if addresses is not None:
            _PRESENT.addresses = {checked_target(name): one for name, one in addresses.items()}
        if workers:
            connection_to(workers, renew=True)


@contextmanager
def kept_settings() -> Iterator[None]:
    """Let connections be of this `with` alone, with their folder and their time limit."""
    before = _PRESENT.timeout, _PRESENT.meeting, _PRESENT.addresses
    try:
        yield
    finally:
        disconnect()
        _PRESENT.timeout, _PRESENT.meeting, _PRESENT.addresses = before


def disconnect() -> None:
    """Let the workers go, with all that they hold."""
    with _LOCK:
        connection, _PRESENT.connection = _PRESENT.connection, None
        if connection is not None:
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
        present = _PRESENT.connection
        if present is not None and present.is_inherited():
            present.check(present.names[0])
        if present is not None and present.lost is not None and renew:
            disconnect()
            present = None
        if present is None:
            names = dict.fromkeys(map(checked_target, workers))
            meeting = _PRESENT.meeting or Meeting()
            present = Connection([*names], meeting, _PRESENT.timeout, _PRESENT.addresses)
            _PRESENT.connection = present
        missing = [one for one in workers if one not in present.names]
        if missing:
            raise WorkerUnavailable(
                f"this program is connected to {listing(present.names)} and not to "
                f"{listing(missing)}; torch lets nobody join later. Name all of them first: "
                f"`soma.distributed.connect({', '.join(map(repr, [*present.names, *missing]))})`."
            )
        return present


def present_connection() -> Connection | None:
    """Return the connection of this process, if there is one."""
    return _PRESENT.connection


def _check_versions(card: Card) -> None:
    differing = versions().differing(card.versions)
    if differing:
        raise WorkerMismatch(
            f"{card.name} cannot work for this program: {'; '.join(differing)}. Start it from an "
            "installation like this one."
        )


def _main_script() -> str | None:
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return str(Path(file).absolute()) if file and file.endswith(".py") else None


atexit.register(disconnect)

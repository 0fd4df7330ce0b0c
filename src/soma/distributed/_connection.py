"""A program's connection to workers: calls with a time limit, and errors that name the worker."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import torch.distributed.rpc as rpc

from soma.core import NodeId
from soma.distributed import _faults, _group, _host
from soma.distributed._joining import join_with
from soma.distributed._meeting import Meeting
from soma.distributed._messages import Failure
from soma.distributed._ways import ways_to
from soma.errors import WorkerLost

_PING_SECONDS = 2.0
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
        _group.refuse_another()
        with ExitStack() as stack:
            self.session = stack.enter_context(meeting.opened())
            ways = stack.enter_context(ways_to(self.names, addresses, meeting))
            join_with(ways, self.session, meeting, timeout)
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

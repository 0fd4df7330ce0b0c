"""torch's RPC group: joined and left; all there is of its settings is here."""

import os
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed.rpc as rpc
from torch._C._distributed_c10d import TCPStore
from torch._C._distributed_rpc import _is_current_rpc_agent_set
from torch.distributed.rpc import constants

from soma.distributed._records import Request
from soma.errors import WorkerUnavailable

_STDERR = 2
# Calls that a worker which is let go does not answer, and contexts that it does not close.
_FAREWELLS = (b"tensorpipe_agent.cpp", b"Could not release Dist Autograd Context")


def join(name: str, request: Request) -> None:
    """Join a session's group under a name that no other session has.

    Raises:
        RuntimeError: not all have come within the time limit of a call.
    """
    for library in ("TP", "GLOO"):  # else torch listens on whatever the host's name leads to
        os.environ[f"{library}_SOCKET_IFNAME"] = request.interface
    if request.rank:
        # Each process looks for the others under the number of its own attempts; a client that
        # has lost a worker and begins anew is at a later one than its fresh workers.
        rpc._init_counter = request.number
    options = rpc.TensorPipeRpcBackendOptions(
        init_method=request.rendezvous, rpc_timeout=request.timeout, num_worker_threads=4
    )
    with warnings.catch_warnings(), _patience(request.timeout):
        warnings.filterwarnings("ignore", message="You are using a Backend .*ProcessGroupGloo")
        rpc.init_rpc(  # type: ignore[no-untyped-call]
            address(name, request.group),
            rank=request.rank,
            world_size=request.size,
            rpc_backend_options=options,
        )


@contextmanager
def meeting_point(host: str) -> Iterator[str]:
    """Have processes on several machines find each other at an address of this one inside.

    Give what a request has as its `rendezvous`. By itself torch would listen on every interface.
    """
    with socket.create_server((host, 0)) as listener:
        port = listener.getsockname()[1]
        store = TCPStore(
            host,
            port,
            is_master=True,
            wait_for_workers=False,
            multi_tenant=True,  # so that the group, which asks for one at this port, takes this one
            master_listen_fd=listener.detach(),
        )
    yield f"tcp://{host}:{port}"
    del store


def refuse_another() -> None:
    """Refuse a group to a process that is in one, as torch does.

    Raises:
        WorkerUnavailable: it has joined one by itself, or was forked from a process that has.
    """
    if _is_current_rpc_agent_set():
        raise WorkerUnavailable(
            "this process is in a group of torch's RPC already, or was forked from one that is, "
            "and torch allows one at a time. Leave a group of your own first "
            "(`torch.distributed.rpc.shutdown()`), or use another process, which "
            '`multiprocessing` begins with "spawn".'
        )


def number() -> int:
    """Return the number of the next group that this process joins, from 0."""
    found: int = rpc._init_counter
    return found


def address(name: str, session: str) -> str:
    """Return what a worker is called in a session's group."""
    return f"{name}:{session}"


def leave() -> None:
    """Leave the group at once, whether or not the others still answer."""
    with _without_farewells():
        rpc.shutdown(graceful=False)


@contextmanager
def _without_farewells() -> Iterator[None]:
    """Hold back what torch logs of each worker that it parts from; all else comes out at the end.

    It writes past Python, at a level that is read once, when torch is loaded.
    """
    try:
        before = os.dup(_STDERR)
    except OSError:  # the program has closed it
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(before, _STDERR)
            os.close(before)
            held.seek(0)
            for line in held:
                if not any(one in line for one in _FAREWELLS):
                    os.write(_STDERR, line)


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """Wait for the others no longer than this inside; torch would for 24 days."""
    before = constants.DEFAULT_PROCESS_GROUP_TIMEOUT
    constants.DEFAULT_PROCESS_GROUP_TIMEOUT = timedelta(seconds=seconds)
    try:
        yield
    finally:
        constants.DEFAULT_PROCESS_GROUP_TIMEOUT = before

"""A worker: waits in the meeting folder, and starts a process for each session it is asked to join.

The process is a fresh one each time: torch joins a group once, and what one session did to
a process is no other session's concern. `_server.py` is what runs in it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from soma.distributed._door import open_door
from soma.distributed._meeting import WITHIN, Meeting
from soma.distributed._records import Request, versions

_LOOK_SECONDS = 0.05
_END_SECONDS = 5.0  # that a session's process has to end by itself


@dataclass(slots=True)
class _Session:
    """The process of a session, and when its client was last seen."""

    process: "subprocess.Popen[bytes]"
    needed: float = field(default_factory=time.monotonic)


def serve(
    name: str,
    *,
    device: str = "cpu",
    address: str | None = None,
    meeting: Meeting | None = None,
    told: Callable[[str], object] = lambda line: None,
    ends: Callable[[], bool] = lambda: False,
) -> None:
    """Be a worker until the process is interrupted.

    Args:
        name: what graphs call it.
        device: where its modules live, such as `cuda:0`.
        address: where programs on other machines ask it, `HOST:PORT`; none can by default.
        meeting: the folder that programs find it in.
        told: gets a line for people whenever something begins or ends.
        ends: whether to end by itself; asked several times a second.

    Raises:
        WorkerUnavailable: there is a worker of this name, the folder is open to others, or the
            address is none of this machine.
    """
    meeting = meeting or Meeting()
    sessions: dict[str, _Session] = {}
    with ExitStack() as stack:
        stack.enter_context(meeting.present(name, device))
        if address is not None:
            stack.enter_context(open_door(name, address, meeting, told))
        told(f"worker {name} waits in {meeting.folder}")
        try:
            while not ends():
                request = meeting.next_request(name)
                if request is not None and _joined(meeting, name, request):
                    process = _started(meeting, name, device, request)
                    sessions[request.session] = _Session(process)
                    told(f"session {request.session} begins")
                for session, held in list(sessions.items()):
                    code = held.process.poll()
                    if code is not None:
                        del sessions[session]
                        _ended(meeting, name, session, code)
                        told(f"session {session} ended with code {code}")
                    elif meeting.client_lives(session):
                        held.needed = time.monotonic()
                    elif time.monotonic() - held.needed > _END_SECONDS:
                        held.process.kill()  # it hangs
                time.sleep(_LOOK_SECONDS)
        finally:
            _end([one.process for one in sessions.values()])


def _joined(meeting: Meeting, name: str, request: Request) -> bool:
    """Whether this worker can join; the client is told why it cannot."""
    differing = versions().differing(request.versions)
    if differing:
        with suppress(OSError):  # the client has given up meanwhile
            said = f"{'; '.join(differing)}. Python, torch and soma are the same on all sides"
            meeting.answer(request.session, name, said)
    return not differing


def _started(
    meeting: Meeting, name: str, device: str, request: Request
) -> "subprocess.Popen[bytes]":
    # `-c` and not `-m`: the script's own `__main__` takes that name's place there.
    code = "from soma.distributed._server import main; main()"
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", code, str(meeting.folder), name, device, str(os.getpid())],
        stdin=subprocess.PIPE,
        process_group=0,  # Ctrl-C in a terminal is for the worker, which ends its sessions
        # A client that goes is no news.
        env={"TORCH_CPP_LOG_LEVEL": "ERROR", **os.environ, WITHIN: request.session},
        cwd=Path.cwd(),
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(msgspec.json.encode(request))
    return process


def _ended(meeting: Meeting, name: str, session: str, code: int) -> None:
    """Tell a client that may still wait; one that has its session does not read it any more."""
    with suppress(OSError):
        meeting.answer(session, name, f"its process ended with code {code}; see what it printed")


def _end(processes: "list[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _END_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

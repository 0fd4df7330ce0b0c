"""Workers on this machine for as long as a `with` lasts: for tests, notebooks, first steps."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from soma.distributed._current import connect, kept_settings
from soma.distributed._meeting import Meeting, refuse_within_a_session
from soma.errors import WorkerUnavailable

_BEGIN_SECONDS = 60.0
_END_SECONDS = 10.0


@contextmanager
def local_cluster(count: int, *, timeout: float = 60.0) -> Iterator[tuple[str, ...]]:
    """Have workers `worker1` to `workerN` on this machine inside; give their names.

    They listen on loopback only, and end with the `with` or the program, whatever happens.

    Args:
        count: how many.
        timeout: seconds that each call may take.
    """
    refuse_within_a_session()
    names = tuple(f"worker{number}" for number in range(1, count + 1))
    folder, process = tempfile.mkdtemp(prefix="soma-"), os.getpid()
    meeting = Meeting(folder)
    # A process of its own group gets no Ctrl-C of the terminal: the program ends its workers.
    code = "from soma.distributed._local_worker import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [
        subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-c", code, folder, name, str(process)],
            env=environment,
            stdin=subprocess.DEVNULL,  # the terminal's would stop it
            stdout=subprocess.DEVNULL,
            process_group=0,
        )
        for name in names
    ]
    try:
        _wait(meeting, names, processes)
        with kept_settings():
            connect(*names, timeout=timeout, folder=folder)
            yield names
    finally:
        if os.getpid() == process:  # and not one that was forked in the `with`
            _end(processes)
            shutil.rmtree(folder, ignore_errors=True)


def _wait(
    meeting: Meeting, names: tuple[str, ...], processes: "list[subprocess.Popen[bytes]]"
) -> None:
    deadline = time.monotonic() + _BEGIN_SECONDS
    while len(meeting.cards()) < len(names):
        if any(one.poll() is not None for one in processes) or time.monotonic() > deadline:
            raise WorkerUnavailable("a worker did not start; what it said is above.")
        time.sleep(0.02)


def _end(processes: "list[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

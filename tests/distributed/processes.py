"""Workers and programs as processes of their own, and what the system knows of them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from soma.distributed import Meeting

ROOT = Path(__file__).parents[2]
Process = subprocess.Popen[str]


@contextmanager
def worker(folder: Path, name: str = "worker1", *more: str) -> Iterator[Process]:
    """Have `soma worker` run inside, and wait until it can be asked."""
    command = [sys.executable, "-m", "soma", "worker", "--folder", str(folder), "--name", name]
    with running([*command, *more]) as process:
        until(lambda: process.poll() is not None or name in names(folder))
        yield process


@contextmanager
def client(code: str, folder: Path) -> Iterator[Process]:
    """Have a program run inside that finds workers in a folder."""
    with running([sys.executable, "-c", code], SOMA_WORKERS_DIR=str(folder)) as process:
        yield process


@contextmanager
def running(command: list[str], **environment: str) -> Iterator[Process]:
    """Have a process run inside; nothing of it is left afterwards."""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), **environment}
    process = subprocess.Popen(
        command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        process.communicate(timeout=20)


def names(folder: Path) -> list[str]:
    """Return the workers of a folder."""
    return [card.name for card in Meeting(folder).cards()]


def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to hold"
        time.sleep(0.02)


def children(process: int) -> list[int]:
    """Return the processes that a process has started and that live."""
    told = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(one) for one in told.split()]


def lives(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return ") Z" not in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def listeners(process: int) -> set[str]:
    """Return where a process listens for TCP, as `address:port` in hexadecimal."""
    own = set()
    for path in Path(f"/proc/{process}/fd").iterdir():
        try:
            own.add(str(path.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            field = line.split()
            if field[3] == "0A" and f"socket:[{field[9]}]" in own:
                found.add(field[1])
    return found


LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def addresses(listening: set[str]) -> set[str]:
    """Return addresses without their ports."""
    return {one.split(":")[0] for one in listening}


def listed(folder: Path, *more: str) -> "list[dict[str, object]] | str":
    """Return what `soma worker --list` says, as data where `--json` is asked for."""
    command = [sys.executable, "-m", "soma", "worker", "--list", "--folder", str(folder), *more]
    with running(command) as process:
        said = process.communicate(timeout=30)[0]
    return json.loads(said) if "--json" in more else said

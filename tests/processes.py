"""Processes that a test starts: they end with it, however it ends."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def started(
    commands: Sequence[Sequence[str]], **options: Any
) -> Iterator[list["subprocess.Popen[str]"]]:
    """Start processes, with their output as text, and kill those that are left at the end.

    One that waits for another that has failed would else stay for ever.
    """
    processes: list[subprocess.Popen[str]] = []
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    try:
        for command in commands:
            processes.append(subprocess.Popen([*command], **{**pipes, **options}))
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()

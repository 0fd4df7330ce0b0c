"""However a program with workers of its own ends, nothing of it is left, and it ends in quiet."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.distributed import processes

pytestmark = [pytest.mark.process, pytest.mark.slow]

TRAIN = """
import os
from soma.distributed import local_cluster
from tests.distributed.test_faults import *
os.setsid()  # as a shell starts a program in a terminal
if __name__ == "__main__":
    with local_cluster(1):
        g = Graph.somatize(Dense(2).at("worker1")).materialize(X).train()
        g.make_optimizer(SGD, lr=0.1)
        step(g)
        print("stepped", flush=True)
        while {goes_on}:
            step(g)
"""


@contextmanager
def training(folder: Path) -> Iterator[tuple[processes.Process, list[int]]]:
    """Have a program train inside, whose temporary files are in a folder; give its processes."""
    command = [sys.executable, "-c", TRAIN.format(goes_on=True)]
    with processes.running(command, TMPDIR=str(folder)) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "stepped\n", program.communicate()
        (worker,) = processes.children(program.pid)
        yield program, [worker, *processes.children(worker)]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_killed(end: signal.Signals, tmp_path: Path) -> None:
    """Its workers end within seconds, and so do their sessions; their folder is gone."""
    with training(tmp_path) as (program, started):
        program.send_signal(end)
        processes.until(lambda: not any(map(processes.lives, started)), seconds=15)
        processes.until(lambda: not [*tmp_path.glob("soma-*")])


def test_an_interrupt_at_the_terminal(tmp_path: Path) -> None:
    """Ctrl-C is for the program alone: it tells of no lost worker, and no other process speaks."""
    with training(tmp_path) as (program, started):
        os.killpg(program.pid, signal.SIGINT)
        told = program.communicate(timeout=30)[1]

    assert told.count("Traceback") == 1
    assert told.endswith("KeyboardInterrupt\n")
    assert not any(map(processes.lives, started))
    assert not [*tmp_path.glob("soma-*")]


def test_the_end_of_a_training_is_quiet() -> None:
    """The last context is let go with the workers, and nothing is told of it."""
    command = [sys.executable, "-c", TRAIN.format(goes_on=False)]
    with processes.running(command) as program:
        assert program.communicate(timeout=60) == ("stepped\n", "")

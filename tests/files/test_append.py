"""The line appender: whole lines, whoever else writes, dies or reads."""

import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from soma.files import Appender, read_lines
from tests.processes import started

CROWD = """
import sys
from soma.files import Appender
path, number = sys.argv[1], int(sys.argv[2])
with Appender(path) as file:
    for line in range(500):
        file.append(f"{number}:{line}:".encode() + b"x" * (line % 90))
"""
KILLED = """
import os, signal, sys
from soma.files import Appender
file = Appender(sys.argv[1])
for line in range(50):
    file.append(str(line).encode())
os.kill(os.getpid(), signal.SIGKILL)
"""
FORKED = """
import os, signal, sys
from soma.files import Appender
file = Appender(sys.argv[1])
with file._lock:  # as if another thread were in the middle of a line
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        file.append(b"child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
file.append(b"parent")
"""
FULL = """
import resource, sys
from soma.files import Appender
file = Appender(sys.argv[1])
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, most))
file.append(b"fits")
try:
    file.append(b"does not fit")
except OSError as error:
    assert "large" in str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    file.append(b"again")
"""


def test_lines_come_in_order_and_are_the_owners(tmp_path: Path) -> None:
    """Each is there as soon as `append` returns, in a file that only its owner reads."""
    path = tmp_path / "lines"
    with Appender(str(path)) as file:
        file.append(b"one")
        seen = read_lines(path)
        file.append(b"two")

    assert (seen, read_lines(path)) == ([b"one"], [b"one", b"two"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("old", [b"", b"a\n", b"a\nhal", b"\x00\x00"])
def test_a_torn_end_gets_a_line_of_its_own(tmp_path: Path, old: bytes) -> None:
    """What was cut off stays as it is, and the next line starts afresh."""
    path = tmp_path / "lines"
    path.write_bytes(old)
    with Appender(str(path)) as file:
        file.append(b"new")

    assert read_lines(path) == [*filter(None, old.split(b"\n")), b"new"]


def test_opening_writes_nothing(tmp_path: Path) -> None:
    """A torn end is repaired by the next line, not before."""
    path = tmp_path / "lines"
    path.write_bytes(b"torn")
    Appender(str(path)).close()

    assert path.read_bytes() == b"torn"


def test_a_line_is_one_line(tmp_path: Path) -> None:
    """A break inside is refused, and nothing is taken after `close`."""
    file = Appender(str(tmp_path / "lines"), durable=True)
    with pytest.raises(ValueError, match="line break"):
        file.append(b"a\nb")
    file.close(durable=True)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.append(b"a")


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    """Eight threads, 4000 lines, all of them whole."""
    path = tmp_path / "lines"
    with Appender(str(path)) as file:

        def work(number: int) -> None:
            for line in range(500):
                file.append(b"%d:%d" % (number, line))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(read_lines(path)) == sorted(
        b"%d:%d" % (n, i) for n in range(8) for i in range(500)
    )


@pytest.mark.process
def test_processes_do_not_mix_their_lines(tmp_path: Path) -> None:
    """Four processes append to one file; each one's lines are whole and in order."""
    path = tmp_path / "lines"
    command = [sys.executable, "-c", CROWD, str(path)]
    with started([[*command, str(number)] for number in range(4)]) as crowd:
        assert [one.wait() for one in crowd] == [0] * 4
    heads = [line.split(b":")[:2] for line in read_lines(path)]

    for number in range(4):
        assert [int(i) for n, i in heads if int(n) == number] == [*range(500)]


@pytest.mark.process
def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    """All lines whose `append` returned are there after `kill -9`."""
    path = tmp_path / "lines"
    died = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)

    assert died.returncode == -signal.SIGKILL
    assert read_lines(path) == [str(line).encode() for line in range(50)]


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "lines"),
    [(FORKED, [b"child", b"parent"]), (FULL, [b"fits", b"does ", b"again"])],
    ids=["forked", "full"],
)
def test_a_fork_and_a_full_disk(tmp_path: Path, script: str, lines: list[bytes]) -> None:
    """A child appends though a thread held the lock; a line that does not fit tears alone."""
    path = tmp_path / "lines"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)

    assert read_lines(path) == lines

"""The atomic writer: the final name holds the old bytes or the new ones, whatever happens."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from soma.files import NoPlainFile, make_folder, write_atomically

CALLS = ["open", "write", "write", "close", "replace"]
DURABLE = ["open", "write", "write", "fsync", "close", "replace", "open folder", "fsync folder"]
KILLED = """
import os, sys
from soma.files import NoPlainFile, write_atomically
path, durable, at = sys.argv[1], sys.argv[2] == "True", int(sys.argv[3])
seen = []
def before(call):
    seen.append(call)
    if len(seen) == at:
        os._exit(9)
write_atomically(path, [b"new ", b"bytes"], durable=durable, before=before)
"""


@pytest.mark.parametrize(("durable", "calls"), [(False, CALLS), (True, DURABLE)])
def test_the_calls_are_these(tmp_path: Path, durable: bool, calls: list[str]) -> None:
    """A write is five system calls; `durable` adds three, and none comes after them."""
    seen: list[str] = []
    path = tmp_path / "file"
    write_atomically(str(path), [b"new ", b"bytes"], durable=durable, before=seen.append)

    assert seen == calls
    assert path.read_bytes() == b"new bytes"


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_plain_file_stays(tmp_path: Path, linked: bool) -> None:
    """A pipe, like a device, is refused and not replaced by a file; nothing is left beside it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    if linked:
        path = tmp_path / "link"
        path.symlink_to("pipe")
    before = sorted(tmp_path.iterdir())

    with pytest.raises(NoPlainFile, match="no plain file"):
        write_atomically(str(path), [b"new"])
    assert sorted(tmp_path.iterdir()) == before
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.process
@pytest.mark.parametrize("old", [None, b"old bytes"])
@pytest.mark.parametrize(
    ("durable", "at"), [(d, n) for d, c in ((False, CALLS), (True, DURABLE)) for n in range(len(c))]
)
def test_a_killed_writer_leaves_old_or_new(
    tmp_path: Path, durable: bool, at: int, old: bytes | None
) -> None:
    """A process that dies before any of its calls leaves no half of a file."""
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)
    arguments = [str(path), str(durable), str(at + 1)]
    died = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    left = path.read_bytes() if path.exists() else None

    assert died.returncode == 9
    assert left == (b"new bytes" if at > DURABLE.index("replace") else old)


@pytest.mark.parametrize("at", range(len(CALLS)))
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EMFILE, errno.EINTR])
def test_a_failed_write_leaves_nothing(tmp_path: Path, at: int, code: int) -> None:
    """A call that fails reaches the caller, and the folder is as it was."""
    path = tmp_path / "file"
    path.write_bytes(b"old bytes")
    seen: list[str] = []

    def before(call: str) -> None:
        seen.append(call)
        if len(seen) == at + 1:
            raise OSError(code, os.strerror(code))

    with pytest.raises(OSError, match=os.strerror(code)):
        write_atomically(str(path), [b"new ", b"bytes"], before=before)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old bytes"]


def test_files_and_folders_are_the_owners(tmp_path: Path) -> None:
    """Files are 0600 and folders 0700, also those made on the way."""
    folder = tmp_path / "a" / "b"
    make_folder(str(folder))
    write_atomically(str(folder / "file"), [b"x"])
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, folder / "file")]

    assert modes == [0o700, 0o700, 0o600]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """A folder cannot be made where a file stands; one that is there is fine."""
    (tmp_path / "file").touch()
    make_folder(str(tmp_path))
    with pytest.raises(FileExistsError):
        make_folder(str(tmp_path / "file"))
    with pytest.raises(FileExistsError):
        make_folder(str(tmp_path / "file" / "below"))


def test_large_and_many_buffers_arrive_in_order(tmp_path: Path) -> None:
    """Buffers follow each other in the file, empty ones too."""
    parts = [b"a" * 3_000_000, b"", memoryview(b"b" * 5), b"c"]
    write_atomically(str(tmp_path / "file"), parts)

    assert (tmp_path / "file").read_bytes() == b"".join(parts)

"""The one way a file gets its final name: written whole under another name, then renamed.

Whoever reads the final name finds the old bytes or the new ones, never half of them, even
after a crash of the writer. `durable=True` makes that hold through a power cut too.
"""
# ruff: noqa: PTH102, PTH105, PTH108, PTH112, PTH116, PTH120 - each line here is one system call

import os
import stat
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import EINVAL
from secrets import token_hex

TEMPORARY = ".tmp-"  # how the name of a file begins that is still being written

Before = Callable[[str], None]
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_MOST = 1 << 30  # some systems refuse to write 2 GB or more at once


class NoPlainFile(OSError):
    """Where a file was to be written stands something else, as a device or a pipe."""


def write_atomically(
    path: str,
    buffers: Iterable[bytes | bytearray | memoryview],
    *,
    durable: bool = False,
    before: Before | None = None,
) -> None:
    """Replace the file at `path`, whose folder exists, by one that holds `buffers`.

    A device or a pipe, as `/dev/null`, is refused: its name would then be that of a plain file.

    Args:
        durable: return only when file and name are on the disk.
        before: called with its name before each system call of the writing; tests let it fail.

    Raises:
        NoPlainFile: there is one.
    """
    say = before or _nothing
    if _is_special(path):
        raise NoPlainFile(
            EINVAL, "no plain file, and cannot be replaced by one; write to another", path
        )
    folder = os.path.dirname(path)
    # Named now and not earlier: a forked child has a process id of its own.
    name = f"{TEMPORARY}{os.getpid()}-{threading.get_ident()}-{token_hex(8)}"
    temporary = f"{folder}/{name}"
    say("open")
    descriptor = os.open(temporary, _NEW, 0o600)
    try:
        try:
            for buffer in buffers:
                _write_all(descriptor, memoryview(buffer).cast("B"), say)
            if durable:
                say("fsync")
                os.fsync(descriptor)
        finally:
            say("close")
            os.close(descriptor)
        say("replace")
        os.replace(temporary, path)
    except BaseException:
        _discard(temporary)
        raise
    if durable:
        _sync_folder(folder, say)


def make_folder(path: str, *, before: Before | None = None) -> None:
    """Make a folder that only its owner enters, and those above it that are missing."""
    say = before or _nothing
    above = os.path.dirname(path)
    if above != path and not os.path.isdir(above):
        make_folder(above, before=before)
    say("mkdir")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def _is_special(path: str) -> bool:
    """Whether a name leads to what is neither a file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # there is nothing yet, or what follows tells
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_all(descriptor: int, view: memoryview, say: Before) -> None:
    """Write a buffer in as many calls as the system wants: a full disk takes a part first."""
    while view:
        say("write")
        view = view[os.write(descriptor, view[:_MOST]) :]


def _sync_folder(folder: str, say: Before) -> None:
    """Bring the names in a folder to the disk, where the system opens folders at all."""
    if os.name == "nt":
        return
    say("open folder")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        say("fsync folder")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(path: str) -> None:
    """Remove a file that nobody has heard of; what is left over, `gc` finds."""
    with suppress(OSError):
        os.unlink(path)


def _nothing(call: str) -> None:
    """Let a system call happen."""

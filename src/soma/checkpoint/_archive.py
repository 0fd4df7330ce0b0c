"""One zip file, read with limits: what it says of itself is checked before anything is read.

Members are read by their exact names and never extracted.
"""

from collections.abc import Iterator
from os import SEEK_END
from pathlib import PureWindowsPath
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

JSON = 16 << 20  # bytes of a member that is JSON
SPARE = 64 << 20  # bytes that a bundle may hold beyond four times its own size
MEMBERS = 10_000
_DIRECTORY = 4 << 20  # bytes of the list of members
_CHUNK = 1 << 20


class Archive:
    """The members of a zip file that somebody may have made to harm.

    Raises:
        ValueError: it is no zip file, or one that no bundle is.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._most = 4 * file.seek(0, SEEK_END) + SPARE
        self._read: set[str] = set()
        self._zip = ZipFile(_Limited(file))
        self._check()

    def read(self, name: str, *, most: int | None = None) -> bytearray:
        """Return what a member holds, in memory of its own; each is read once.

        Args:
            most: bytes it may have.

        Raises:
            ValueError: it is missing, damaged or too large.
        """
        try:
            size = self._zip.getinfo(name).file_size
        except KeyError:
            raise ValueError(f"its member {name!r} is missing") from None
        if most is not None and size > most:
            raise ValueError(f"its member {name!r} has more than {most:,} bytes")
        if name in self._read:
            raise ValueError(f"its member {name!r} stands for two things")
        self._read.add(name)
        data = bytearray(size)
        view, place = memoryview(data), 0
        with self._zip.open(name) as member:
            while place < size and (chunk := member.read(min(_CHUNK, size - place))):
                view[place : place + len(chunk)] = chunk
                place += len(chunk)
            if place < size or member.read(1):
                raise ValueError(f"its member {name!r} is of another size than it says")
        return data

    def _check(self) -> None:
        infos = self._zip.infolist()
        if len(infos) > MEMBERS:
            raise ValueError(f"it has more than {MEMBERS:,} members")
        if sum(info.file_size for info in infos) > self._most:
            raise ValueError("it would unpack to far more than its own size")
        seen: set[str] = set()
        for info in infos:
            name = info.filename
            if info.orig_filename != name or any(_harmful(name)):
                raise ValueError(f"its member {info.orig_filename[:80]!r} has a name of no bundle")
            if name.casefold() in seen:
                raise ValueError(f"its member {name!r} is there twice")
            if info.flag_bits & 1 or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise ValueError(f"its member {name!r} is encrypted, or packed in another way")
            seen.add(name.casefold())


class _Limited:
    """A file of which no more is read at once than a list of members may have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Read; what asks for more is a list of members that never ends."""
        if size > _DIRECTORY:
            raise ValueError("its list of members is too long")
        return self._file.read(_DIRECTORY if size < 0 else size)


def _harmful(name: str) -> Iterator[bool]:
    """Say of each thing that a name must not be whether it is."""
    yield not name or "\0" in name or "\\" in name
    yield name.startswith("/") or bool(PureWindowsPath(name).drive)
    yield any(part in ("", ".", "..") for part in name.split("/"))

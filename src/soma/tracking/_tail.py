"""Reads a growing file of lines from where the last look ended."""

from pathlib import Path

_MOST = 1 << 20  # bytes in one look


class Tail:
    """The lines of a file that others append to, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def read(self) -> list[bytes]:
        """Return the next whole lines, a MiB of them at most; none if there are no more yet.

        Raises:
            OSError: the file is there and cannot be read.
        """
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read(_MOST)
            while len(data) == _MOST and b"\n" not in data:  # a line that no run has written
                self._at += _MOST
                data = file.read(_MOST)
        end = data.rfind(b"\n") + 1
        self._at += end
        return data[:end].split(b"\n")[:-1]

"""`RunFile`: a file that says the same of a run whoever writes it, and however many do."""

import os
from pathlib import Path

_WRITE = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)


class RunFile:
    """A file that is written from its beginning, in place of an earlier one.

    Each piece goes to where it belongs, not to the end of whatever is there: so a sink and an
    export, or two exports at once, write the same bytes to the same places, and nothing stands
    twice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        path.unlink(missing_ok=True)

    def add(self, data: bytes) -> None:
        """Write what comes next.

        Raises:
            OSError: the system does not take it, as when the disk is full.
        """
        with os.fdopen(os.open(self._path, _WRITE, 0o666), "wb") as file:
            file.seek(self._size)
            file.write(data)
        self._size += len(data)

    def end(self) -> None:
        """Drop what others have left behind the end, once no more can come."""
        os.truncate(self._path, self._size)

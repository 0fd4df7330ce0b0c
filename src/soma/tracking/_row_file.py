"""`RowFile`: a file of a run with one JSON object on each line."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import to_builtins

from soma.files import Appender, write_atomically
from soma.tracking._lines import encode
from soma.tracking._numbers import numbers_out
from soma.tracking._plain import text_out


class RowFile:
    """A file of a run with one JSON object, a mapping of plain data, on each line.

    Args:
        path: of the file; its folder exists.
        number: counts the run's files of that name, from 1.
    """

    def __init__(self, path: str, number: int) -> None:
        self.number = number
        self._path = path
        self._file = Appender(path)

    def append(self, row: Mapping[str, object]) -> int:
        """Keep one row, NaN and infinity included, and return its size in bytes."""
        line = encoded(numbers_out(row))
        self._file.append(line)
        return len(line) + 1

    def replace(self, rows: Iterable[Mapping[str, object]]) -> list[int]:
        """Replace all rows by these, and return their sizes in bytes.

        A reader sees either all of the old rows or all of the new ones.
        """
        lines = [encoded(numbers_out(row)) + b"\n" for row in rows]
        write_atomically(self._path, lines)
        self._file.close()
        self._file = Appender(self._path)
        return [len(line) for line in lines]

    def close(self) -> None:
        """Bring all rows to the disk; no more may be appended."""
        self._file.close(durable=True)


def encoded(value: object) -> bytes:
    """Return a value as JSON, with texts that are not valid Unicode made so."""
    try:
        return encode(value)
    except UnicodeEncodeError:  # a name with half a character in it
        return encode(_utf8(to_builtins(value)))


def _utf8(value: Any) -> Any:
    if isinstance(value, str):
        return text_out(value)
    if isinstance(value, dict):
        return {text_out(name): _utf8(one) for name, one in value.items()}
    return [*map(_utf8, value)] if isinstance(value, list | tuple) else value

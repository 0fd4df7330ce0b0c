"""Reads files of unknown origin: bounded in size and depth, and nothing in them is run."""

import os
import sys
from pathlib import Path

import msgspec

_MOST_BYTES = 16 << 20  # of a file that is read whole
LONGEST_LINE = 1 << 20  # bytes; readers leave out those above
_MOST_DEPTH = 100  # of lists and objects in each other
_MOST_NUMBER = int(sys.float_info.max)


def is_folder(path: str | Path) -> bool:
    """Whether a path leads to a folder; one that the system refuses to follow does not."""
    return os.path.isdir(path)  # noqa: PTH112 - `Path.is_dir` raises for a name that is too long


def read_lines(path: str | Path) -> list[bytes]:
    """Return the whole lines of a file that others may be appending to.

    Left out are an unfinished last line, empty ones, and those over 1 MiB. A file that is
    missing, or is no file, has none.

    Raises:
        OSError: it cannot be read.
    """
    path = Path(path)
    if not path.is_file():  # a pipe of that name would never end
        return []
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    return [line for line in data.split(b"\n")[:-1] if 0 < len(line) <= LONGEST_LINE]


def read_json(path: str | Path, *, most: int = _MOST_BYTES) -> object:
    """Return what a file of JSON holds.

    Args:
        most: bytes it may have.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no file, or no JSON, too large, or nested too deeply.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"`{path.name}` is no file.")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"`{path.name}` has more than {most:,} bytes.")
    return parse_json(data)


def parse_json(data: bytes) -> object:
    """Return the value of a text of JSON, in which numbers are finite, as floats too.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    try:
        value: object = msgspec.json.decode(data)
    except RecursionError:
        raise ValueError(f"nested more than {_MOST_DEPTH} deep.") from None
    level = [value]
    for _ in range(_MOST_DEPTH):
        if any(type(one) is int and abs(one) > _MOST_NUMBER for one in level):
            raise ValueError("a number in it is too large.")
        level = [child for one in level for child in _inside(one)]
        if not level:
            return value
    raise ValueError(f"nested more than {_MOST_DEPTH} deep.")


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []

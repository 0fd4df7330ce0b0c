"""The one way from a name that somebody gave to a path: never out of a folder."""

import os
from pathlib import Path, PureWindowsPath

_LONGEST = 255  # bytes in the name of a file
_DEVICES = {
    "aux",
    "con",
    "nul",
    "prn",
    *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789"),
}


def below(root: str | Path, name: str) -> Path:
    """Return the path of `name` below `root`, symbolic links resolved.

    Raises:
        ValueError: the name leads elsewhere, or is none that a file can have.
    """
    parts = name.replace("\\", "/").split("/")
    if (
        not name
        or "\0" in name
        or PureWindowsPath(name).drive
        or any(len(os.fsencode(part)) > _LONGEST for part in parts)
        or any(part.partition(".")[0].strip().lower() in _DEVICES for part in parts)
    ):
        raise ValueError(f"{name[:300]!r} is no name that a file below {str(root)!r} can have.")
    try:
        folder = Path(root).resolve()
        path = (folder / name).resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise ValueError(f"{name!r} cannot be followed below {str(root)!r}: {error}") from error
    if path == folder or not path.is_relative_to(folder):
        raise ValueError(f"{name!r} leads out of {str(root)!r}; a name inside it is wanted.")
    return path

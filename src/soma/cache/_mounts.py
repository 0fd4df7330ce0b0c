"""Is a folder on a disk of this machine? Only there are files mapped into memory.

Over a network another host may replace a file under a mapping, and touching it then kills
the process.
"""

import os
from pathlib import Path

__all__ = ["is_local"]

LOCAL = {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}


def is_local(folder: str, table: str = "/proc/self/mountinfo") -> bool:
    """Is this folder on a file system known to be local? Not known is no."""
    try:
        lines = Path(table).read_text("utf-8", "surrogateescape").splitlines()
        here = os.path.realpath(folder)
    except OSError:
        return False
    best, kind = "", ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        words = fields.split(" ")
        if len(words) < 5 or not rest:
            continue
        point = _plain(words[4])
        # Of two mounts at one place, the later one hides the earlier.
        if len(point) >= len(best) and _below(here, point):
            best, kind = point, rest.split(" ")[0]
    return kind in LOCAL


def _below(path: str, point: str) -> bool:
    """Is this path the mount point or under it?"""
    return path == point or path.startswith(point.rstrip("/") + "/")


def _plain(word: str) -> str:
    r"""Return a mount point as its path: the table writes a space as `\040`."""
    for code in ("\\040", "\\011", "\\012", "\\134"):
        word = word.replace(code, chr(int(code[1:], 8)))
    return word

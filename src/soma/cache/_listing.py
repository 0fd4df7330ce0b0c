"""What is in the folder of a store: its own files by name, and nothing that a link leads to."""

import os
import stat
from collections.abc import Iterator

from soma.cache._layout import FOLDERS, kind_and_name
from soma.cache._store import Entry
from soma.files import TEMPORARY

__all__ = ["listing"]


def listing(root: str) -> Iterator[Entry]:
    """Yield the files of the store at `root`, those still being written among them."""
    yield from _files(root, "")
    for folder in FOLDERS.values():
        for shard in _scan(root, folder):
            yield from _files(root, f"{folder}/{shard.name}/")


def _files(root: str, below: str) -> Iterator[Entry]:
    """Yield the store's files in one folder; a name that is none of ours is left alone."""
    for file in _scan(root, below):
        path = below + file.name
        found = kind_and_name(path)
        if found is None and not file.name.startswith(TEMPORARY):
            continue
        try:
            status = file.stat(follow_symlinks=False)
        except OSError:
            continue  # gone since
        if found is not None:
            yield Entry(*found, status.st_size, status.st_mtime)
        elif stat.S_ISREG(status.st_mode):
            yield Entry("temporary", path, status.st_size, status.st_mtime)


def _scan(root: str, below: str) -> list[os.DirEntry[str]]:
    """List a folder; one that is not there, or is no folder, or is a link, is empty."""
    path = f"{root}/{below}".rstrip("/")
    try:
        if below and stat.S_ISLNK(os.lstat(path).st_mode):
            return []
        with os.scandir(path) as found:
            return list(found)
    except OSError:
        return []

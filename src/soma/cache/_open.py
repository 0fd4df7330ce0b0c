"""What `Graph(cache=...)` takes, and the store that it stands for."""

import os
import re
import sys
from enum import Enum
from pathlib import Path
from typing import Final

from soma.cache._file_store import FileStore
from soma.cache._memory_store import MemoryStore
from soma.cache._object_store import ObjectStore
from soma.cache._store import Store
from soma.cache._upkeep import parse_size
from soma.errors import InvalidCache

__all__ = ["DEFAULT", "Default", "default_folder", "open_store"]

CAP = "20G"

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_BUCKETS = ("s3", "gs", "az")
_ACCEPTED = (
    "a cache is None, 'memory', a folder, a URL that begins with s3://, gs:// or az://, "
    "or a store of soma.cache"
)


class Default(Enum):
    """The cache of a graph whose maker has not chosen one."""

    DEFAULT = "default"

    def __repr__(self) -> str:
        return "<the default cache>"


DEFAULT: Final = Default.DEFAULT

# One store for each place and cap, so that a process checks a blob and warns once.
_opened: dict[tuple[str, int | None], FileStore] = {}


def open_store(cache: object = DEFAULT) -> Store | None:
    """Return the store that an argument stands for; None: nothing is cached.

    Raises:
        InvalidCache: it stands for none; the message tells what does.
    """
    match cache:
        case None:
            return None
        case Default.DEFAULT:
            chosen = os.environ.get("SOMA_CACHE_DIR")
            return _at(chosen) if chosen else _folder(default_folder())
        case "memory":
            return MemoryStore()
        case str() | Path() if str(cache).strip():
            return _at(cache)
        case Store():
            return cache
    raise InvalidCache(f"{cache!r} is no cache: {_ACCEPTED}.")


def default_folder() -> Path:
    """Return where this platform keeps what a user could do without."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "soma"


def _at(place: str | Path) -> Store:
    """Return the store at a path or URL."""
    scheme = _URL.match(place) if isinstance(place, str) else None
    if scheme is None:
        return _folder(place)
    if scheme[1].lower() not in _BUCKETS:
        raise InvalidCache(f"`{scheme[1]}://` is no place for a cache: {_ACCEPTED}.")
    try:
        return ObjectStore(str(place))
    except ImportError:
        raise
    except Exception as error:
        raise InvalidCache(
            f"no cache can be opened at this `{scheme[1]}://` URL: {error}"
        ) from None


def _folder(path: str | Path) -> FileStore:
    """Return this process's store in a folder; a fresh one when the last could not write."""
    asked = os.environ.get("SOMA_CACHE_MAX") or CAP
    try:
        max_size = parse_size(asked)
    except InvalidCache as error:
        raise InvalidCache(f"$SOMA_CACHE_MAX: {error}") from None
    store = FileStore(path, max_size=max_size)
    known = _opened.get((store.root, max_size))
    if known is not None and known.writable:
        return known
    return _opened.setdefault((store.root, max_size), store) if known is None else store

"""Tells a library's files from the user's own, by where they lie.

What is installed from an index counts by its version, and the standard library by that of
Python. All else is the user's own and counts by its code: scripts, notebooks, checkouts,
and folders that were installed as they are. `_reach.py` walks what is own.
"""

import os
import sys
from functools import cache
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, distributions
from json import loads
from pathlib import Path
from sysconfig import get_path
from types import ModuleType
from typing import NamedTuple

from soma._extras import DIST


class Library(NamedTuple):
    """What counts by its version."""

    name: str
    version: str


PYTHON = Library("python", f"{sys.version_info.major}.{sys.version_info.minor}")

# Folders are compared as text, which a first look at some hundred files can afford.
_HOUSE = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_STANDARD = tuple(
    f"{os.path.realpath(get_path(name))}{os.sep}" for name in ("stdlib", "platstdlib")
)
_INSTALLED = ("site-packages", "dist-packages")
_MAIN = frozenset({"__main__", "__mp_main__"})


def library_of_module(name: str) -> Library | None:
    """Return the library that a module is of, or None where it is the user's own."""
    if name in _MAIN:  # what a user types and runs, whatever program it runs in
        return None
    while (module := sys.modules.get(name)) is None:
        name, _, last = name.rpartition(".")
        if not last or not name:
            return None
    spec = getattr(module, "__spec__", None)
    if getattr(spec, "origin", None) in ("built-in", "frozen"):
        return PYTHON
    file = getattr(module, "__file__", None)
    if file is None and spec is not None:  # a folder without `__init__.py`
        file = next(iter(getattr(module, "__path__", ())), None)
    return library_of_file(file) if file else None


@cache
def library_of_file(file: str) -> Library | None:
    """Return the library that a source or extension file is of, or None where it is own."""
    if file.startswith("<"):
        return PYTHON if file.startswith("<frozen ") else None
    path = os.path.realpath(file)
    if path.startswith(_HOUSE):
        return Library(DIST, sys.modules["soma"].__version__)
    for name in _INSTALLED:
        before, found, inside = path.partition(f"{os.sep}{name}{os.sep}")
        if found:
            return _installed(Path(before, name), inside) or _extension(path)
    return PYTHON if path.startswith(_STANDARD) else _extension(path)


def module_name(name: str) -> str:
    """Return a module's name, which for a script is that of its file."""
    if name not in _MAIN:
        return name
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if not file or library_of_file(file) is not None:
        return "__main__"
    known = getattr(getattr(module, "__spec__", None), "name", None)
    return known if isinstance(known, str) and known not in _MAIN else _stem(file)


@cache
def _stem(file: str) -> str:
    return Path(file).stem


def is_module(value: object) -> bool:
    """Whether a value is a module, of whatever kind."""
    return issubclass(type(value), ModuleType)


def _installed(folder: Path, inside: str) -> Library | None:
    """Find the distribution that brought a file, or None if there is none."""
    top = Path(inside).parts[0].partition(".")[0]
    package = Path(top, "__init__.py")
    whole = (folder / package).exists()  # else several may share the folder
    return _owner(str(folder), top, package.as_posix() if whole else Path(inside).as_posix())


@cache
def _owner(folder: str, top: str, file: str) -> Library | None:
    """Find who brought a file: mostly one of the same name, else the one that lists it."""
    if "/" not in file or file.endswith("/__init__.py"):
        for distribution in distributions(name=top, path=[folder]):
            return _version(distribution)
    for distribution in distributions(path=[folder]):
        record = distribution.read_text("RECORD") or ""
        if record.startswith(f"{file},") or f"\n{file}," in record:
            return _version(distribution)
    return None


def _version(distribution: Distribution) -> Library | None:
    """Return name and version; a folder that was installed as it is has none to rely on."""
    source = distribution.read_text("direct_url.json")
    if source is None:
        return Library(distribution.name, distribution.version)
    if "dir_info" in loads(source):
        return None
    return Library(distribution.name, f"{distribution.version} of {_short(source.encode())}")


def _extension(path: str) -> Library | None:
    """Let compiled code that nobody versions count by its bytes."""
    file = Path(path)
    if not path.endswith(tuple(EXTENSION_SUFFIXES)) or not file.is_file():
        return None
    return Library(file.name, f"of {_short(file.read_bytes())}")


def _short(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()

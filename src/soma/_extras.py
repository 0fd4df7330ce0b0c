"""Optional libraries: loaded late, and a kind word when they are missing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType

from soma.errors import MissingExtra

DIST = "soma-graph"  # the name on the package index; `soma` there is another project


def require(module: str, *, extra: str) -> ModuleType:
    """Import and return a library, or a room of ours that needs one.

    Raises:
        MissingExtra: a library is not installed; the message tells the command.
    """
    if (found := loaded(module)) is not None:
        return found
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        library = (missing.name or module).partition(".")[0]
        if library == "soma":
            raise  # ours, and so a mistake of ours
        raise MissingExtra(
            f"`{module}` needs {library}, which is not installed. "
            f"Install it with: pip install '{DIST}[{extra}]'"
        ) from missing


def late(package: str, files: Mapping[str, str], *, extra: str) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which loads what it offers when that is first used.

    Args:
        files: where each name stands: a file of the package as `_sklearn`, or any module by its
            whole name.
        extra: what has to be installed for it.
    """

    def attribute(name: str) -> object:
        if name not in files:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        file = files[name]
        whole = f"{package}.{file}" if file.startswith("_") else file
        return getattr(require(whole, extra=extra), name)

    return attribute


def loaded(module: str) -> ModuleType | None:
    """Return a library that has been imported to its end, without importing it.

    A node on another thread may be in the middle of its import; nothing of it is in use then.
    """
    found = sys.modules.get(module)
    return None if getattr(getattr(found, "__spec__", None), "_initializing", False) else found

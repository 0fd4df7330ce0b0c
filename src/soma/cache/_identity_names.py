"""Says of functions, classes and modules what they are called, whose they are and where from."""

import builtins
import functools
import importlib
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from soma.cache._identity_refusal import PIN, Unfingerprintable
from soma.cache._location import (
    PYTHON,
    Library,
    is_module,
    library_of_file,
    library_of_module,
    module_name,
)
from soma.core import Filter

IMPORTERS: tuple[object, ...] = (builtins.__import__, importlib.import_module)

_CALLABLE = frozenset({BuiltinFunctionType, FunctionType, MethodType})

# What reaches anything at all, by names that are made while the code runs.
_UNSEEN: tuple[object, ...] = (eval, exec, globals, sys.modules, *IMPORTERS)


def class_name(cls: type) -> str:
    """Name a class for people, alike from run to run."""
    return f"{module_name(cls.__module__)}.{cls.__qualname__}"


def pin_of(cls: type) -> type | None:
    """Return the class whose `_cache_version` speaks for the code of `cls`, or part of it."""
    if not issubclass(cls, Filter):
        return None
    holder = next(base for base in cls.__mro__ if "_cache_version" in vars(base))
    return holder if vars(holder)["_cache_version"] is not None else None


def function_label(function: FunctionType) -> str:
    """Name a function for people by where it was written, whatever has wrapped it."""
    code = function.__code__
    name = function.__qualname__ if code.co_filename.startswith("<") else code.co_qualname
    return f"{module_name(str(function.__globals__.get('__name__')))}.{name}"


def is_class(value: object) -> bool:
    """Whether a value is a class, whatever it says of itself."""
    return issubclass(type(value), type)


def is_own(value: Any) -> bool:
    """Whether a value is a function or a class of the user's own."""
    if type(value) is FunctionType:
        return library_of_function(value) is None
    return is_class(value) and library_of_module(value.__module__) is None


def library_of_function(function: FunctionType) -> Library | None:
    """Return the library whose code a function runs, or None where it is the user's own."""
    file = function.__code__.co_filename
    if not file.startswith("<"):
        return library_of_file(file)
    if file.startswith("<frozen "):
        return PYTHON
    return library_of_module(str(function.__globals__.get("__name__")))


def in_library(value: Any) -> tuple[Library, str] | None:
    """Return the library and the name by which a function, class or module counts there."""
    if is_class(value):
        library = library_of_module(value.__module__)
        return library and (library, f"{value.__module__}.{value.__qualname__}")
    if is_module(value):
        library = library_of_module(value.__name__)
        return library and (library, value.__name__)
    return _under_its_name(value) if type(value) in _CALLABLE else None


def _under_its_name(value: Any) -> tuple[Library, str] | None:
    """Find a function in a library by its own name; one that was made elsewhere is not there."""
    owner = getattr(value, "__self__", None)
    for home in (getattr(value, "__module__", None), getattr(owner, "__module__", None)):
        if isinstance(home, str) and (library := library_of_module(home)) is not None:
            for path in (value.__qualname__, value.__name__):
                if _find(sys.modules.get(home), path) is value:
                    return library, f"{home}.{path}"
    return None


def registry_of(function: FunctionType) -> Mapping[type, object] | None:
    """Return what a `functools.singledispatch` function chooses from, if it is one."""
    if function.__globals__ is not vars(functools):
        return None
    return getattr(function, "registry", None)


def refuse_unseen(value: object, name: str, where: str) -> None:
    """Refuse code that uses what can reach anything.

    Raises:
        Unfingerprintable: it does.
    """
    if any(value is unseen for unseen in _UNSEEN):
        reason = f"it uses `{name}`, and what that reaches cannot be seen; {PIN}"
        raise Unfingerprintable(where, reason)


def imported(name: str) -> ModuleType | Library | None:
    """Return a module that code imports when it runs; None if there is none.

    A module of the user's own is imported now, so that the first run is keyed as later ones
    are. Of a library that nobody has loaded yet, its version is enough.
    """
    if name in sys.modules:
        return sys.modules[name]
    try:
        spec = find_spec(name.partition(".")[0])
        if spec is None:
            return None
        file = spec.origin if spec.has_location else None
        library = library_of_file(file) if file else PYTHON if spec.origin else None
        return library or importlib.import_module(name)
    except Exception:  # the code that imports it meets the same, and may be ready for it
        return None


def _find(module: object, path: str) -> object:
    found: object = module
    for name in path.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return getattr(found, "__func__", found) if isinstance(found, staticmethod) else found

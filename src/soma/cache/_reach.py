"""Walks over the user's own code, from one class or function to all that it reaches.

Each function, class and constant on the way becomes one entry with a digest of its own,
which refers to the others by name; so a walk may go in circles, and one may say later
which entry differs. What a class reaches is kept on the class, and used for as long as all
that was read is as it was.
"""

import sys
from collections import deque
from collections.abc import Callable
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any

from soma.cache._code import Name, facts_of
from soma.cache._digest import combine
from soma.cache._identity_guards import ABSENT, REACH, Guards, builtins_of
from soma.cache._identity_names import (
    IMPORTERS,
    class_name,
    function_label,
    imported,
    in_library,
    is_class,
    is_own,
    library_of_function,
    pin_of,
    refuse_unseen,
    registry_of,
)
from soma.cache._identity_parts import DERIVED, WRAPPERS, class_parts
from soma.cache._identity_refusal import Unfingerprintable
from soma.cache._identity_values import Values
from soma.cache._location import Library, is_module, library_of_module, module_name


class Reach:
    """All that a class, a function or a module reaches."""

    def __init__(self, root: object, path: str) -> None:
        self.entries: dict[str, str] = {}
        self.libraries: dict[str, str] = {}
        self._root = root
        self._guards = Guards()
        self._labels: dict[int, str] = {}  # by id, which is safe: `_kept` keeps them alive
        self._kept: list[object] = []
        self._taken: set[str] = set()
        self._queue: deque[Callable[[], None]] = deque()
        self._walking = True
        start = self._refer(root, path)
        while self._queue:
            self._queue.popleft()()
        self._walking = False
        entries = [part for entry in sorted(self.entries.items()) for part in entry]
        self.digest = combine("reach", start, *entries)

    def __reduce__(self) -> tuple[object, ...]:
        # A class may be sent to another process with all that it has; this would be false there.
        return type(None), ()

    def holds(self, root: object) -> bool:
        """Whether a walk from `root` would find the same now."""
        try:
            return root is self._root and self._guards.hold(self._digest)
        except Unfingerprintable:
            return False

    def _digest(self, value: object, path: str) -> str:
        return Values(self._refer).digest(value, path)

    def _noted(self, value: object, path: str) -> str:
        """Return the digest of a value that is part of what has been read."""
        reference = self._refer(value, path)
        if reference is not None:
            return reference
        found = self._digest(value, path)
        self._guards.read_data(value, path, found)
        return found

    def _refer(self, value: Any, path: str) -> str | None:
        """Return what stands for code; what is own is walked over in its turn."""
        found = in_library(value)
        if found is not None:
            return self._library(*found)
        if is_class(value):
            return self._own(value, class_name(value), self._walk_class)
        if type(value) is FunctionType:
            return self._own(value, function_label(value), self._walk_function)
        if is_module(value):
            return self._own(value, f"{module_name(value.__name__)}.*", self._walk_module)
        return None

    def _library(self, library: Library, name: str) -> str:
        self.libraries[library.name] = library.version
        return combine("library", library.name, name)

    def _own(self, value: Any, label: str, walk: Callable[[Any, str], None]) -> str:
        known = self._labels.get(id(value))
        if known is None:
            if not self._walking:
                raise Unfingerprintable(label, "it was not there before")
            known = self._labels[id(value)] = self._free(label)
            self._kept.append(value)
            self._queue.append(lambda: walk(value, known))
        return combine("own", known)

    def _free(self, label: str) -> str:
        """Return a label that nothing else has."""
        free, number = label, 1
        while free in self._taken:
            number += 1
            free = f"{label}#{number}"
        self._taken.add(free)
        return free

    def _enter(self, value: object, label: str) -> str:
        """Make an entry of a value, unless it is code and gets its own."""
        found = self._noted(value, label)
        if type(value) in WRAPPERS or self._refer(value, label) is not None:
            return found
        free = label if self.entries.get(label) == found else self._free(label)
        self.entries[free] = found
        return combine("own", free)

    def _walk_class(self, cls: type, label: str) -> None:
        self._guards.read_bases(cls)
        pinned, own = pin_of(cls), vars(cls)
        if pinned is cls:
            version = self._guards.read(own, "_cache_version")
            self._enter(version, f"{label}._cache_version")
            return
        mro = cls.__mro__[1:]
        bases = mro[: mro.index(pinned) + 1] if pinned else mro
        parts = [self._digest(base, label) for base in (*bases, type(cls))]
        for name, value in class_parts(cls, self._guards.read_all(own)):
            derived = name in DERIVED
            parts += [name, (self._digest if derived else self._enter)(value, f"{label}.{name}")]
        self.entries[label] = combine("class", len(bases), *parts)

    def _walk_module(self, module: ModuleType, label: str) -> None:
        prefix = label.removesuffix("*")
        parts: list[str] = []
        for name, value in sorted(self._guards.read_all(vars(module)).items()):
            if not name.startswith("__"):
                parts += [name, self._enter(value, prefix + name)]
        self.entries[label] = combine("module", *parts)

    def _walk_function(self, function: FunctionType, label: str) -> None:
        self._guards.read_function(function)
        registry = registry_of(function)
        if registry is not None:
            self.entries[label] = combine("chosen from", self._noted(registry, label))
            return
        code, library = facts_of(function.__code__), library_of_function(function)
        contents = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        cells = {name: self._guards.read_cell(cell) for name, cell in contents}
        parts = [
            part
            for name in (code.free if library is None else cells)
            for part in self._cell(cells[name], f"{label}, its variable `{name}`")
        ]
        if library is not None:  # a wrapper that a library has put around something
            where = f"{function.__globals__.get('__name__')}.{function.__code__.co_qualname}"
            self.entries[label] = combine("wrapper", self._library(library, where), *parts)
            return
        for kind in (function.__defaults__, function.__kwdefaults__):
            parts.append(self._noted(kind, f"{label}, its defaults"))
        parts += [self._name(name, function, label) for name in code.names]
        self.entries[label] = combine("function", code.digest, *parts)

    def _cell(self, content: object, path: str) -> list[str]:
        return ["empty"] if content is ABSENT else ["cell", self._noted(content, path)]

    def _name(self, name: Name, function: FunctionType, label: str) -> str:
        """Return what stands for a name that a function reads."""
        space, path = function.__globals__, name.path
        if name.imports is not None:
            module = self._imported(name.imports, name.level, space)
            return self._follow(module, name.imports, path, label)
        value = self._guards.read(space, path[0])
        where = f"{module_name(str(space.get('__name__')))}.{path[0]}"
        if value is ABSENT:
            where = path[0]
            value = self._guards.read(builtins_of(function), where)
        if name.argument is not None:
            inner = self._followed(value, where, path[1:])[0]
            if any(inner is importer for importer in IMPORTERS):
                module = self._imported(name.argument, 0, space)
                return self._follow(module, name.argument, (), label)
        return self._follow(value, where, path[1:], label)

    def _imported(self, name: str, level: int, space: dict[str, object]) -> object:
        if level:
            name = resolve_name("." * level + name, str(space.get("__package__")))
        module = imported(name)
        self._guards.read(sys.modules, name)
        return ABSENT if module is None else module

    def _follow(self, start: object, where: str, path: tuple[str, ...], label: str) -> str:
        value, where, library = self._followed(start, where, path)
        refuse_unseen(value, where, label)
        if value is ABSENT:
            return combine("missing", where)
        if isinstance(value, Library):
            return self._library(value, where)
        if library is not None and not is_own(value):
            return self._library(library, where)
        return self._enter(value, where)

    def _followed(
        self, value: object, where: str, path: tuple[str, ...]
    ) -> tuple[object, str, Library | None]:
        """Read attributes off modules and functions; all of other things counts anyway."""
        library: Library | None = None
        for place, name in enumerate(path):
            if isinstance(value, ModuleType):
                module = value.__name__
                library = library_of_module(module)
                inner = self._guards.read(vars(value), name)
                where = f"{module_name(module)}.{name}"
                if inner is ABSENT and library is not None:
                    return library, ".".join((module, *path[place:])), library
                if inner is ABSENT:
                    inner = self._guards.read(vars(value), "__getattr__")
                value = value if name == "__dict__" else inner
            elif type(value) is FunctionType and name in vars(value) and is_own(value):
                self._enter(value, where)
                value, where = self._guards.read(vars(value), name), f"{where}.{name}"
            else:
                break
        return value, where, library


def reach_of(root: object, path: str) -> Reach:
    """Return what a class, a function or a module of the user's own reaches now."""
    kept = vars(root).get(REACH) if isinstance(root, type) else None
    if isinstance(kept, Reach) and kept.holds(root):
        return kept
    found = Reach(root, path)
    if isinstance(root, type):
        type.__setattr__(root, REACH, found)
    return found

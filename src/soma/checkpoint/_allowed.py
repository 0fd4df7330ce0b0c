"""Which classes a bundle may name: what the user gave, what is here already, what is trusted.

Nothing is imported to find out, except below the prefixes that the user trusts, and nothing is
called before it is known to be a class of the wanted kind.
"""

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import FunctionType
from typing import TypeVar

from soma.draw import printable
from soma.errors import CheckpointError

T = TypeVar("T")
OWN = ("soma", "torch.optim")  # whose import does nothing but define


class Allowed:
    """What the user lets a bundle name.

    Args:
        classes: allowed under their names, wherever they have moved since.
        modules: prefixes such as `"myproject."`; what is below them may be imported.
    """

    def __init__(self, classes: Iterable[object], modules: str | Iterable[str]) -> None:
        if not isinstance(classes, Iterable):
            raise TypeError(f"`classes` is {classes!r}; a list is wanted, as `classes=[Encoder]`.")
        self._given = list(classes)
        prefixes = [modules] if isinstance(modules, str) else list(modules)
        for one in self._given:
            if not isinstance(one, type | FunctionType):
                raise TypeError(f"`classes` holds {one!r}; classes are wanted, not their names.")
        for prefix in prefixes:
            if not isinstance(prefix, str) or not prefix.strip("."):
                raise ValueError(
                    f"`trust_modules` holds {prefix!r}; the beginning of names of modules is "
                    'wanted, such as `"myproject."`.'
                )
        self._trusted = [prefix.rstrip(".") for prefix in prefixes]

    def subclass(self, module: str, name: str, base: type[T]) -> type[T]:
        """Return a class that is a kind of `base`.

        Raises:
            CheckpointError: it is not allowed, not there, or of another kind.
        """
        found = self._among_given(module, name) or _here(module, name, base)
        if found is None and _below(module, OWN):
            found = _imported(module, name)
        found = found or self._from_trusted(module, name)
        if found is None:
            raise CheckpointError(self._refusal(module, name))
        if not isinstance(found, type) or not issubclass(found, base):
            raise CheckpointError(
                f"`{printable(module)}.{printable(name)}` is no subclass of `{base.__name__}`, so "
                "it is not called."
            )
        return found

    def reference(self, module: str, name: str) -> object:
        """Return a class or a function that stands as an argument.

        Raises:
            CheckpointError: it is not allowed, or not there.
        """
        found = self._among_given(module, name) or self._from_trusted(module, name)
        if found is None:
            raise CheckpointError(self._refusal(module, name))
        return found

    def _among_given(self, module: str, name: str) -> object:
        same = [one for one in self._given if getattr(one, "__qualname__", None) == name]
        exact = [one for one in same if getattr(one, "__module__", None) == module]
        if not exact and len(same) > 1:
            raise CheckpointError(
                f"`classes` holds {len(same)} of the name `{printable(name)}`, and none is of "
                f"`{printable(module)}`. Give the one that is meant."
            )
        return (exact or same or [None])[-1]

    def _from_trusted(self, module: str, name: str) -> object:
        if not _below(module, self._trusted):
            return None
        found = _imported(module, name)
        if found is None:
            raise CheckpointError(
                f"the module `{printable(module)}` has no `{printable(name)}` of its own any more. "
                f"Pass the class it has become: `classes=[{printable(name)}]`."
            )
        return found

    def _refusal(self, module: str, name: str) -> str:
        module, name = printable(module), printable(name)
        last = name.rpartition(".")[2]
        # What ran as a script is not found by a name again.
        lines = [] if module == "__main__" else [f'trust_modules=["{module.partition(".")[0]}."]']
        return (
            f"the bundle names `{module}.{name}`, which is not known here, and nothing is imported "
            "because a file names it. If you trust it, import the class and add to the call: "
            f"{' or '.join([f'classes=[{last}]', *lines])}."
        )


def _below(module: str, prefixes: Iterable[str]) -> bool:
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes)


def _here(module: str, name: str, base: type[T]) -> object:
    """Return a class that this process has already, the one in its module before others."""
    found = [
        one for one in _subclasses(base) if (one.__module__, one.__qualname__) == (module, name)
    ]
    current = _inside(sys.modules.get(module), module, name)
    if current in found:
        return current
    return found[-1] if found else None


def _subclasses(base: type) -> Iterator[type]:
    """Give all subclasses, the older ones first."""
    seen: set[type] = set()
    waiting: list[type] = [base]
    one: type
    while waiting:
        for one in type.__subclasses__(waiting.pop(0)):
            if one not in seen:
                seen.add(one)
                waiting.append(one)
                yield one


def _imported(module: str, name: str) -> object:
    """Import a module that is trusted, and return what it defines under a name."""
    try:
        home = import_module(module)
    except Exception as error:  # of its own code too
        raise CheckpointError(f"importing `{printable(module)}` failed: {error}") from error
    return _inside(home, module, name)


def _inside(home: object, module: str, name: str) -> object:
    """Return what a module itself defines: what it imported from elsewhere does not count."""
    found = home
    for part in name.split("."):
        try:
            found = vars(found).get(part)  # reading `vars` runs no code
        except TypeError:
            return None
    if not isinstance(found, type | FunctionType):
        return None
    return found if (found.__module__, found.__qualname__) == (module, name) else None

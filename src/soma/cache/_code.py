"""What counts of a piece of bytecode, and which names it reads.

Two functions count as one when they do the same: line numbers, files, docstrings, comments
and the names of local variables are left out. `_reach.py` looks up what the names stand for.
"""

import dis
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from weakref import WeakKeyDictionary

from soma.cache._digest import digest

# What a line break or a docstring may bring in or take away, and how closures are built,
# which is told by the variables that a nested function gets.
_SILENT = frozenset({"CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "LOAD_CLOSURE", "MAKE_CELL", "NOP"})
_HANDS_ON = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW"})  # of a shared variable: to a closure
_NOTES = frozenset({"__doc__", "__firstlineno__", "__static_attributes__"})
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_STORES = frozenset({"STORE_FAST", "STORE_NAME"})
_SEES_LOCALS = frozenset({"dir", "locals", "vars"})
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
_VARIABLES = frozenset({*dis.haslocal, *dis.hasfree})
_FUSED = re.compile(r"(?:LOAD|STORE)_FAST(?:_BORROW|_CHECK)?")

# Of the flags: arguments, and whether it is a generator or a coroutine.
_FLAGS = 0x3AF

AHEAD = 16  # instructions: more than any chain of attributes needs


@dataclass(frozen=True, slots=True)
class Name:
    """A global or an imported module, with the attributes that are read off it at once."""

    path: tuple[str, ...]
    imports: str | None = None  # the module, where the code itself imports it
    level: int = 0  # the dots of a relative import
    argument: str | None = None  # the text it is called with, where it is called with one text


@dataclass(frozen=True, slots=True)
class Code:
    """What counts of a code object."""

    digest: str
    names: tuple[Name, ...]
    free: tuple[str, ...]  # the variables it gets from outside, in the order of their use


_known: "WeakKeyDictionary[CodeType, Code]" = WeakKeyDictionary()


def facts_of(code: CodeType) -> Code:
    """Return what counts of `code`, everything nested in it included."""
    known = _known.get(code)
    if known is None:
        known = _known[code] = _Reader(code).read()
    return known


@dataclass(slots=True)
class _Reader:
    """Reads one code object from its first instruction to its last."""

    code: CodeType
    names: dict[Name, None] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def read(self) -> Code:
        code = self.code
        arguments = code.co_argcount + code.co_kwonlyargcount
        for name in code.co_varnames[:arguments]:
            self._number(name)
        every = list(dis.get_instructions(code))
        kept = [*self._kept(every)]
        places = _places(every, kept)
        rows = [part for each in kept for part in self._row(each, places)]
        self._find_names(kept)
        callable_by = code.co_varnames[code.co_posonlyargcount : arguments]
        seen = any(_SEES_LOCALS.intersection(name.path[:1]) for name in self.names)
        counts = (arguments, code.co_kwonlyargcount, code.co_posonlyargcount)
        content = [
            *(code.co_flags & _FLAGS, *counts, callable_by),
            (*code.co_varnames, *code.co_cellvars, *code.co_freevars) if seen else (),
            rows,
            _guarded(code, places, len(kept)),
        ]
        free = tuple(name for name in self.numbers if name in code.co_freevars)
        return Code(digest(content), tuple(self.names), free)

    def _number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def _is_shared(self, name: str) -> bool:
        return name in self.code.co_cellvars or name in self.code.co_freevars

    def _kept(self, every: list[dis.Instruction]) -> Iterator[dis.Instruction]:
        """Leave out what does nothing and the texts of nested classes; part what was fused."""
        for each, after in zip(every, [*every[1:], every[-1]], strict=True):
            noted = any(
                one.opname == "STORE_NAME" and one.argval in _NOTES for one in (each, after)
            )
            if each.opname in _SILENT or noted:
                continue
            if isinstance(each.argval, tuple) and each.opcode in dis.haslocal:
                for name, operation in zip(each.argval, _FUSED.findall(each.opname), strict=True):
                    yield each._replace(opname=operation, argval=name)
            else:
                yield each

    def _row(self, each: dis.Instruction, places: Mapping[int, int]) -> Iterator[object]:
        """Give an instruction in terms that hold elsewhere."""
        if each.opcode in _VARIABLES:
            shared = self._is_shared(each.argval)
            if not (shared and each.opname in _HANDS_ON):
                yield from (each.opname, self._number(each.argval), shared)
            return
        yield each.opname
        if each.opcode in dis.hasconst:
            yield from self._constant(self.code.co_consts[each.arg or 0])
        elif each.opcode in dis.hasname:
            yield each.argrepr
        elif each.opcode in _JUMPS:
            yield places[each.argval]
        else:
            yield each.arg

    def _constant(self, value: object) -> Iterator[object]:
        if not isinstance(value, CodeType):
            yield value
            return
        nested = facts_of(value)
        self.names.update(dict.fromkeys(nested.names))
        yield from ("code", nested.digest, tuple(map(self._number, nested.free)))

    def _find_names(self, kept: list[dis.Instruction]) -> None:
        """Collect the globals and modules that are read, each with what is read off it."""
        modules: dict[str, set[str]] = {}
        for place, each in enumerate(kept):
            after = kept[place + 1 : place + AHEAD]
            if each.opname == "IMPORT_NAME":
                level, wanted = kept[place - 2].argval, kept[place - 1].argval
                if after[0].opname in _STORES and not self._is_shared(after[0].argval):
                    modules.setdefault(after[0].argval, set()).add(each.argval)
                    continue
                for name in wanted or ("",):
                    self.names[Name((name,) if name else (), each.argval, level)] = None
            elif each.opname in _GLOBAL:
                path, argument = _followed(after)
                self.names[Name((each.argval, *path), argument=argument)] = None
            elif each.opcode in dis.haslocal and not each.opname.startswith("STORE"):
                for module in sorted(modules.get(each.argval, ())):
                    self.names[_imported(module, _followed(after)[0])] = None


def _imported(module: str, path: tuple[str, ...]) -> Name:
    """Name what is read off the variable that `import module` sets: the outermost package."""
    top, *inner = module.split(".")
    if list(path[: len(inner)]) == inner:
        return Name(path[len(inner) :], module)
    return Name(path, top)


def _followed(after: list[dis.Instruction]) -> tuple[tuple[str, ...], str | None]:
    """Return the attributes read next, and the one text that the result is called with."""
    path: list[str] = []
    for each in after:
        if each.opname not in _ATTRIBUTE:
            break
        path.append(each.argval)
    rest = [each for each in after[len(path) :] if each.opname != "PUSH_NULL"]
    calls = len(rest) > 1 and rest[1].opname in ("CALL", "PRECALL") and rest[1].arg == 1
    text = rest[0].argval if calls and rest[0].opcode in dis.hasconst else None
    return tuple(path), text if isinstance(text, str) else None


def _places(every: list[dis.Instruction], kept: list[dis.Instruction]) -> dict[int, int]:
    """Number the kept instructions; one that is left out has the place of the next."""
    numbers = {each.offset: number for number, each in enumerate(kept)}
    places: dict[int, int] = {}
    place = len(kept)
    for each in reversed(every):
        place = places[each.offset] = numbers.get(each.offset, place)
    return places


def _guarded(code: CodeType, places: Mapping[int, int], end: int) -> list[object]:
    """Return which stretches are guarded by which handlers."""
    table: list[object] = []
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]
        first, last = places[entry.start], places.get(entry.end, end)
        if first < last:
            table += [first, last, places[entry.target], entry.depth, entry.lasti]
    return table

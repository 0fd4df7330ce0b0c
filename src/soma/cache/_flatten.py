"""Turns a value into rows, each holding only scalars and references to earlier rows.

Nothing here calls itself, so nesting costs no stack; an object met twice is one row, so
shared contents cost once. `_digest.py` and `_codec.py` each read the rows once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from soma.cache._parts import ARRAYS, PAIRED, SCALARS, Parts, Refused
from soma.cache._registry import take_apart

Foreign: TypeAlias = Callable[[object, str], bytes | None]

DEEPEST = 1_000
OPEN = -1

_CLASSES = {("numpy", "ndarray"), ("torch", "Tensor"), ("torch.nn.parameter", "Parameter")}


class Row(NamedTuple):
    """One value: its parts, with items that are scalars or `(number of an earlier row,)`."""

    parts: Parts
    items: Sequence[object]


class Flat(NamedTuple):
    """A whole value: its rows, and the scalar or reference that it is."""

    rows: list[Row]
    root: object


class Misfit(ValueError):
    """A value that has no rows, with the path to the part that has none."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'the value'}: {reason}")
        self.path = path
        self.reason = reason


class _Visit(NamedTuple):
    """A value whose items are being visited."""

    value: object
    parts: Parts
    rest: Iterator[object]
    items: list[object]


def flatten(value: object, *, storing: bool = False, foreign: Foreign | None = None) -> Flat:
    """Return the rows of a value.

    Args:
        storing: refuse what has a digest and no stored form.
        foreign: gives bytes for values of unknown types.

    Raises:
        Misfit: a part of the value is of no known type, or holds itself.
    """
    if type(value) in SCALARS:
        return Flat([], value)
    stack: list[_Visit] = []
    whole = _parts(value, stack, storing, foreign)
    if SCALARS.issuperset(map(type, whole.items)):  # an array, or a short list: most values are
        return Flat([Row(whole, whole.items)], (0,))
    rows: list[Row] = []
    known: dict[int, int] = {}  # by id, which is safe: rows and stack keep every item alive

    def enter(item: object, parts: Parts) -> None:
        if SCALARS.issuperset(map(type, parts.items)):
            known[id(item)] = len(rows)
            rows.append(Row(parts, parts.items))
            return
        if len(stack) >= DEEPEST:
            raise Misfit("", f"it is nested deeper than {DEEPEST:,} levels")
        known[id(item)] = OPEN
        stack.append(_Visit(item, parts, iter(parts.items), []))

    enter(value, whole)
    while stack:
        visit = stack[-1]
        for item in visit.rest:
            if type(item) in SCALARS:
                visit.items.append(item)
                continue
            if id(item) not in known:
                enter(item, _parts(item, stack, storing, foreign))
                if stack[-1] is not visit:
                    break
            number = known[id(item)]
            if number == OPEN:
                raise Misfit(_path(stack), "it holds itself")
            visit.items.append((number,))
        else:
            stack.pop()
            known[id(visit.value)] = len(rows)
            if stack:
                stack[-1].items.append((len(rows),))
            rows.append(Row(visit.parts, visit.items))
    return Flat(rows, (len(rows) - 1,))


def lone_array(value: object) -> Parts | None:
    """Return the parts of a value that is one array, without a row around them; else None."""
    cls: Any = type(value)
    try:
        if not _may_be_array(cls):
            return None
        parts = take_apart(value)
    except Exception:  # `flatten` says what is wrong
        return None
    return parts if parts.kind in ARRAYS else None


@lru_cache(maxsize=1_024)
def _may_be_array(cls: type) -> bool:
    return (cls.__module__, cls.__name__) in _CLASSES


def _parts(item: object, stack: list[_Visit], storing: bool, foreign: Foreign | None) -> Parts:
    """Take one value apart, or say where it stands and why it cannot be."""
    try:
        parts = take_apart(item)
    except Refused as refusal:
        reason = str(refusal)
        parts = None
    except Exception as error:  # a type's own code may raise anything
        reason = f"taking a `{type(item).__qualname__}` apart failed: {error}"
        raise Misfit(_path(stack), reason) from error
    if parts is None and foreign is not None:
        path = _path(stack)
        stand_in = foreign(item, path)
        if stand_in is not None:
            parts = Parts("foreign", facts=(stand_in,), unstorable="it only has a digest")
    if parts is None:
        raise Misfit(_path(stack), reason)
    if storing and parts.unstorable:
        raise Misfit(_path(stack), parts.unstorable)
    return parts


def _path(stack: list[_Visit]) -> str:
    """Return where the item stands that is being visited, like `.weights[3]`."""
    return "".join(_step(visit.parts, len(visit.items)) for visit in stack)


def _step(parts: Parts, position: int) -> str:
    """Return the last step of a path."""
    if parts.names:
        return f".{parts.names[position]}"
    if parts.kind in PAIRED:
        key = parts.items[position - position % 2]
        shown = repr(key) if type(key) in SCALARS else f"a {type(key).__name__}"
        return f"[{shown}]" if position % 2 else f"[{shown}] (the key)"
    return f"[{position}]"

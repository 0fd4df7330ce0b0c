"""The common form of every value: what kind it is, what describes it, what it holds.

An adapter takes a value apart into `Parts` and puts it together again. The digest, the
stored form and the checks all work on parts, so a new type is two functions in
`adapters/` and nothing else. `_flatten.py` comes next.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
Scalar: TypeAlias = bool | int | float | str | None
Fact: TypeAlias = Scalar | bytes

SCALARS = frozenset({type(None), bool, int, float, str})

ARRAYS = frozenset({"numpy.array", "torch.tensor", "torch.parameter"})  # their facts: str and int
SORTED = frozenset({"set", "frozenset"})
PAIRED = frozenset({"dict", "defaultdict", "Counter"})  # keys and values take turns


class Block(NamedTuple):
    """Raw little-endian bytes, with the type and shape that other tools shall see."""

    data: Buffer
    dtype: str = "U8"
    shape: tuple[int, ...] | None = None  # None: as many as there are bytes


class Parts(NamedTuple):
    """A value taken apart."""

    kind: str
    items: Sequence[object] = ()
    facts: tuple[Fact, ...] = ()
    block: Block | None = None
    aside: tuple[Scalar, ...] = ()  # stored and restored, yet no part of the digest
    names: Sequence[str] = ()  # of the items, for messages
    unstorable: str = ""  # why it has a digest and no stored form


class Stored(NamedTuple):
    """The same, read back: the items are whole, the facts and the block are not checked."""

    items: list[Any]
    facts: tuple[Any, ...]
    block: Buffer | None
    aside: tuple[Any, ...]
    copy: bool

    def bytes(self) -> Buffer:
        """Return the block to read from."""
        if self.block is None:
            raise ValueError("a block is missing")
        return self.block

    def memory(self) -> Buffer:
        """Return the block as memory that belongs to this value alone and may be written to."""
        block = self.bytes()
        if self.copy or memoryview(block).readonly:
            return bytearray(block)
        return block


TakeApart: TypeAlias = Callable[[Any], Parts]
PutTogether: TypeAlias = Callable[[Stored], object]


class Refused(ValueError):
    """A value that cannot be taken apart; the text says why."""


def raw(data: Any) -> memoryview:
    """Return the bytes of something that lies in memory in one piece."""
    return memoryview(data).cast("B")

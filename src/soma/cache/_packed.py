"""Long lists of one scalar type, as one buffer in place of thousands of items."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import le
from struct import error
from struct import pack as pack_numbers
from struct import unpack as unpack_numbers
from sys import byteorder
from typing import Any, cast

from soma.cache._parts import Block, Buffer

LONG = 32  # items; shorter lists stay readable in the stored form

FLOATS, INTS, BOOLS, TEXTS = "floats", "ints", "bools", "texts"


def pack(items: Sequence[Any]) -> tuple[str, Block] | None:
    """Return the packing of a long sequence of one type, or None for any other."""
    count = len(items)
    if count < LONG:
        return None
    packer = _PACKERS.get(type(items[0]))
    if packer is None or list(map(type, items)).count(type(items[0])) != count:
        return None
    return packer(items)


def unpack(packing: str, data: Buffer) -> list[Any]:
    """Return the items again.

    Raises:
        ValueError: the bytes are no such packing.
    """
    if packing == FLOATS:
        return _number_list("d", data)
    if packing == INTS:
        return _number_list("q", data)
    if packing == BOOLS:
        return list(map(bool, data))
    if packing == TEXTS:
        return _read_texts(memoryview(data))
    raise ValueError(f"no packing is called {packing!r}")


def _floats(items: Sequence[float]) -> tuple[str, Block]:
    count = len(items)
    return FLOATS, Block(pack_numbers(f"<{count}d", *items), "F64", (count,))


def _ints(items: Sequence[int]) -> tuple[str, Block] | None:
    count = len(items)
    try:
        return INTS, Block(pack_numbers(f"<{count}q", *items), "I64", (count,))
    except error:  # an integer of more than 64 bits
        return None


def _bools(items: Sequence[bool]) -> tuple[str, Block]:
    return BOOLS, Block(bytes(items), "BOOL", (len(items),))


def _texts(items: Sequence[str]) -> tuple[str, Block]:
    """Write how many there are, where each ends, then the texts."""
    texts = [item.encode("utf-8", "surrogatepass") for item in items]
    count = len(items)
    ends = pack_numbers(f"<{count + 1}q", count, *accumulate(map(len, texts)))
    return TEXTS, Block(b"".join((ends, *texts)))


def _read_texts(data: memoryview) -> list[str]:
    """Read what `_texts` wrote."""
    (count,) = _numbers("q", data[:8])
    if not 0 <= count < len(data) // 8:
        raise ValueError("more texts than bytes")
    start = 8 * (count + 1)
    ends = _numbers("q", data[8:start])
    begins = (0, *ends[:-1])
    text = bytes(data[start:])
    if (ends[-1] if ends else 0) != len(text) or not all(map(le, begins, ends)):
        raise ValueError("texts that overlap")
    slices = map(slice, begins, ends)
    if text.isascii():
        return list(map(text.decode("ascii").__getitem__, slices))
    return [text[piece].decode("utf-8", "surrogatepass") for piece in slices]


def _number_list(letter: str, data: Buffer) -> list[Any]:
    """Read the same as a list, without a tuple on the way where the machine's order is ours."""
    if byteorder != "little":
        return list(_numbers(letter, data))
    words: memoryview[Any] = memoryview(data).cast("B").cast(cast(Any, letter))
    return words.tolist()


def _numbers(letter: str, data: Buffer) -> tuple[Any, ...]:
    """Read little-endian numbers of eight bytes."""
    return unpack_numbers(f"<{len(data) // 8}{letter}", data)


_PACKERS: dict[type, Callable[[Any], tuple[str, Block] | None]] = {
    float: _floats,
    int: _ints,
    bool: _bools,
    str: _texts,
}

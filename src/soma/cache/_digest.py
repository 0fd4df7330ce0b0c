"""The digest of a value: the same for equal values, another one for any that differ.

Every row of a value becomes a typed, length-prefixed encoding. Long encodings and buffers are
replaced by their own hash, so a shared object is hashed once and the bytes of a large array are
never copied. The engine makes its keys with `digest` and `combine`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, TypeAlias

from blake3 import blake3

from soma.cache._flatten import Flat, Foreign, Misfit, Row, flatten, lone_array
from soma.cache._hash import hash_bytes
from soma.cache._parts import ARRAYS, PAIRED, SORTED, Buffer, Parts
from soma.errors import SomaError

Digest: TypeAlias = str

VALUE = b"soma value 1:"  # a new number here makes every stored entry a miss
KEY = b"soma key 1:"
LONGEST = 512  # bytes of an encoding inside another one; a longer one is hashed
COPIED = 2_048  # bytes of a buffer inside an encoding; a longer one is hashed


class Undigestible(SomaError, ValueError):
    """A value has no digest; `path` says where and `reason` why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'the value'}: {reason}")
        self.path = path
        self.reason = reason


def digest(
    value: object, *, unordered_dicts: bool = False, foreign: Foreign | None = None
) -> Digest:
    """Return the digest of a value, inputs and outputs alike.

    Args:
        unordered_dicts: give dicts of equal content one digest, whatever their order.
        foreign: gives bytes that stand for a value of a type unknown here, or None.

    Raises:
        Undigestible: a part of the value is of no known type, or holds itself.
    """
    if (parts := lone_array(value)) is not None and parts.block is not None:
        return blake3(VALUE + _array(parts, encode_block(parts.block.data))).hexdigest()
    try:
        flat = flatten(value, foreign=foreign)
    except Misfit as misfit:
        raise Undigestible(misfit.path, misfit.reason) from misfit.__cause__
    return digest_flat(flat, encode_blocks(flat), unordered_dicts=unordered_dicts)


def combine(*parts: Digest | int | None) -> Digest:
    """Return one digest for several digests, texts and numbers, in order."""
    encoded = [_ENCODERS[type(part)](part) for part in parts]
    return blake3(KEY + b"%d:" % len(parts) + b"".join(encoded)).hexdigest()


def encode_blocks(flat: Flat) -> list[bytes]:
    """Return the encoding of each block of a value, in their order."""
    return [encode_block(row.parts.block.data) for row in flat.rows if row.parts.block is not None]


def encode_block(data: Buffer) -> bytes:
    """Return the encoding of a block: its bytes, or their hash when there are many."""
    size = len(data)
    if size <= COPIED:
        return b"b%d:" % size + data
    return b"B%d:%b" % (size, hash_bytes(data))


def digest_flat(flat: Flat, blocks: Sequence[bytes], *, unordered_dicts: bool = False) -> Digest:
    """Return the digest of a value that is already in rows, its blocks encoded."""
    if not flat.rows:
        return blake3(VALUE + _scalar(flat.root)).hexdigest()
    known: list[bytes] = []
    rest = iter(blocks)
    *inner, root = flat.rows
    for row in inner:
        encoding = _row(row, known, rest, unordered_dicts)
        known.append(encoding if len(encoding) <= LONGEST else b"h" + hash_bytes(encoding))
    return blake3(VALUE + _row(root, known, rest, unordered_dicts)).hexdigest()


def _row(row: Row, known: list[bytes], blocks: Iterator[bytes], unordered_dicts: bool) -> bytes:
    """Encode a row: the number of its facts and items, then each in turn."""
    parts, contents = row
    block = b"-" if parts.block is None else next(blocks)
    if parts.kind in ARRAYS:
        return _array(parts, block)
    items = [known[item[0]] if type(item) is tuple else _scalar(item) for item in contents]
    if parts.kind in SORTED:
        items.sort()
    elif unordered_dicts and parts.kind in PAIRED:
        items = sorted(map(b"".join, zip(items[::2], items[1::2], strict=True)))
    facts = [_scalar(fact) for fact in parts.facts]
    head = b"(%d,%d:" % (len(facts), len(items))
    return b"".join((head, _text(parts.kind), *facts, *items, block))


def _array(parts: Parts, block: bytes) -> bytes:
    """Encode an array, whose facts are texts and integers."""
    return _head(parts.kind, *parts.facts) + block


@lru_cache(maxsize=1_024, typed=True)
def _head(kind: str, *facts: Any) -> bytes:
    """Encode what comes before the bytes of an array; kept, since shapes repeat."""
    encoded = b"".join(map(_scalar, facts))
    return b"(%d,%d:%b%b" % (len(facts), 0, _text(kind), encoded)


def _scalar(value: object) -> bytes:
    """Encode a scalar or a fact. No encoding is the beginning of another."""
    return _ENCODERS[type(value)](value)


def _text(value: str) -> bytes:
    text = value.encode() if value.isascii() else value.encode("utf-8", "surrogatepass")
    return b"s%d:%b" % (len(text), text)


def _int(value: int) -> bytes:
    size = value.bit_length() // 8 + 1
    return b"i%d:%b" % (size, value.to_bytes(size, "little", signed=True))


_double = Struct("<d").pack

_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"N",
    bool: lambda value: b"T" if value else b"F",
    int: _int,
    float: lambda value: b"f" + _double(value),
    str: _text,
    bytes: lambda value: b"y%d:%b" % (len(value), value),
}

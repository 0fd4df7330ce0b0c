"""A value as bytes to store, and back: small ones as JSON text, others as a file.

Both forms hold a list of rows, as `_flatten.py` makes them. Every row names a kind that
this process has to know, and may only refer to rows before it. Reading checks sizes before
it makes anything, and never imports, evaluates or unpickles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from struct import pack, unpack
from typing import Any, NamedTuple, TypeAlias

import msgspec

from soma.cache import _tensor_file
from soma.cache._digest import Digest, digest_flat, encode_blocks
from soma.cache._flatten import DEEPEST, Flat, Misfit, flatten
from soma.cache._parts import Block, Buffer, Stored
from soma.cache._registry import put_together
from soma.errors import SomaError

FORMAT = 1
SMALL = 4_096  # bytes of text that a record holds itself
LONGEST = 16_000_000  # bytes of text that are read
EXACT = 2**53  # integers beyond are not exact in every reader of JSON
HEAVIEST = 10_000_000  # parts of a value, those that stand in it twice counted twice

Item: TypeAlias = bool | int | float | str | list[int | str] | None


class Unencodable(SomaError, ValueError):
    """A value cannot be stored; `path` says where and `reason` why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path or 'the value'}: {reason}")
        self.path = path
        self.reason = reason


class Undecodable(SomaError, ValueError):
    """A stored form is no value here: damaged, foreign, newer, or of a missing library."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value to store: its text, or the buffers of its file and their hash."""

    digest: Digest
    inline: bytes | None
    blob: tuple[Buffer, ...] | None
    blob_hash: str | None
    size: int


class _Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """One part of a value. An item is a scalar, `[row]`, or `[type, text]`."""

    kind: str
    items: list[Item] = []
    facts: list[Item] = []
    block: int | None = None
    aside: list[Item] = []


class _Document(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """A whole value. A file holds the blocks itself."""

    soma: int
    value: Item
    rows: list[_Row] = []
    blocks: list[bytes] = []


_document = msgspec.json.Decoder(_Document)


def encode(value: object) -> Encoded:
    """Return the stored form of a value, with its digest.

    Raises:
        Unencodable: a part of the value cannot be stored.
    """
    try:
        flat = flatten(value, storing=True)
    except Misfit as misfit:
        raise Unencodable(misfit.path, misfit.reason) from misfit.__cause__
    encoded = encode_blocks(flat)
    digest = digest_flat(flat, encoded)
    document, blocks = _write_document(flat)
    try:
        _check_extent(document)
    except ValueError as error:
        raise Unencodable("", str(error)) from error
    if sum(len(block.data) for block in blocks) <= SMALL:
        document.blocks = [bytes(block.data) for block in blocks]
        text = msgspec.json.encode(document)
        if len(text) <= SMALL:
            return Encoded(digest, text, None, None, len(text))
        document.blocks = []
    try:
        blob = _tensor_file.write(msgspec.json.encode(document).decode(), blocks)
    except ValueError as error:
        raise Unencodable("", str(error)) from error
    blob_hash = _tensor_file.hash_parts(blob[0], encoded)
    return Encoded(digest, None, blob, blob_hash, sum(map(len, blob)))


def decode_inline(text: str | bytes) -> object:
    """Return the value that a text holds.

    Raises:
        Undecodable: it holds none.
    """
    try:
        if len(text) > LONGEST:
            raise ValueError("a text that is too long")
        document = _known_document(text, None)
        return _put_together(document, document.blocks, copy=True)
    except Exception as error:
        raise Undecodable(f"this text is no value: {error}") from error


def decode_blob(buffer: memoryview, *, copy: bool) -> object:
    """Return the value that a file holds.

    Args:
        buffer: the whole file.
        copy: give arrays memory of their own. Without, they lie in the buffer if it may be
            written to, so it has to be private to this value.

    Raises:
        Undecodable: it holds none.
    """
    try:
        structure, blocks = _tensor_file.read(buffer)
        known = _known_document if len(structure) <= SMALL else _known_document.__wrapped__
        return _put_together(known(structure, len(blocks)), blocks, copy=copy)
    except Exception as error:
        raise Undecodable(f"this file is no value: {error}") from error


def _write_document(flat: Flat) -> tuple[_Document, list[Block]]:
    """Return rows as they are written, and the blocks that they number."""
    blocks: list[Block] = []
    rows = []
    for parts, items in flat.rows:
        number = None
        if parts.block is not None:
            number = len(blocks)
            blocks.append(parts.block)
        row = _Row(parts.kind, _write_items(items), _write_items(parts.facts), number)
        row.aside = _write_items(parts.aside)
        rows.append(row)
    return _Document(FORMAT, _write_items([flat.root])[0], rows), blocks


def _write_items(items: Sequence[Any]) -> list[Any]:
    return [_write_item(item) for item in items]


def _write_item(item: Any) -> Any:
    """Return what stands for an item in JSON: itself wherever every reader reads it back."""
    kind = type(item)
    if kind is float and not isfinite(item):
        return ["float", pack(">d", item).hex()]
    if kind is int and not -EXACT <= item <= EXACT:
        return ["int", hex(item)]
    if kind is str and not item.isascii():
        try:
            item.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return ["str", item.encode("utf-8", "surrogatepass").hex()]
    return item


class _ReadRow(NamedTuple):
    """One part of a value, checked: only what its items refer to is left to look up."""

    kind: str
    items: list[Item]
    facts: tuple[Any, ...]
    block: int | None
    aside: tuple[Any, ...]


class _ReadDocument(NamedTuple):
    """A checked document, which nobody changes."""

    rows: list[_ReadRow]
    value: Item
    blocks: Sequence[Buffer]


@lru_cache(maxsize=512)
def _known_document(text: str | bytes, blocks: int | None) -> _ReadDocument:
    """Return what a text holds: the same few are read again and again.

    Args:
        blocks: how many stand in the file around the text; None: it holds them itself.
    """
    document = _document.decode(text)
    if blocks is None:
        return _read_document(document, len(document.blocks))
    if document.blocks:
        raise ValueError("blocks in two places")
    return _read_document(document, blocks)


def _read_document(document: _Document, blocks: int) -> _ReadDocument:
    """Check a document that has so many blocks."""
    if document.soma != FORMAT:
        raise ValueError(f"format {document.soma} is not known here")
    _check_extent(document)
    used = [row.block for row in document.rows if row.block is not None]
    if len(set(used)) != len(used) or not all(0 <= number < blocks for number in used):
        raise ValueError("a block in two places, or in none")  # two arrays would share memory
    rows = [
        _ReadRow(
            row.kind,
            row.items,
            tuple([_read_item(fact, ()) for fact in row.facts]),
            row.block,
            tuple([_read_item(fact, ()) for fact in row.aside]),
        )
        for row in document.rows
    ]
    return _ReadDocument(rows, document.value, document.blocks)


def _put_together(document: _ReadDocument, blocks: Sequence[Buffer], *, copy: bool) -> object:
    """Put the rows together, first to last."""
    values: list[object] = []
    for kind, items, facts, number, aside in document.rows:
        block = None if number is None else blocks[number]
        whole = [_read_item(item, values) for item in items]
        values.append(put_together(kind, Stored(whole, facts, block, aside, copy)))
    return _read_item(document.value, values)


def _check_extent(document: _Document) -> None:
    """Raise if a value is so deep, or so often shared, that walking it would not end."""
    extents: list[tuple[int, int]] = []
    for row in document.rows:
        depth, weight = 0, 1
        for item in row.items:
            if isinstance(item, list | tuple) and len(item) == 1:
                inner_depth, inner_weight = extents[int(item[0])]
                depth, weight = max(depth, inner_depth), weight + inner_weight
        if depth > DEEPEST or weight > HEAVIEST:
            raise ValueError(f"it is deeper than {DEEPEST:,} levels or shares parts too often")
        extents.append((depth + 1, weight))


def _read_item(item: Item, values: Sequence[object]) -> Any:
    """Return what a written item stands for."""
    if type(item) is not list:
        return item
    if len(item) == 1 and type(row := item[0]) is int and row >= 0:
        return values[row]
    match item:
        case ["float", str(bits)]:
            return unpack(">d", bytes.fromhex(bits))[0]
        case ["int", str(digits)]:
            return int(digits, 16)
        case ["str", str(text)]:
            return bytes.fromhex(text).decode("utf-8", "surrogatepass")
    raise ValueError("an item that is nothing")

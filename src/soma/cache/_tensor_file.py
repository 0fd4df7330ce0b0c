"""The container of large values: one safetensors file, written and read without copies.

Eight bytes of header size, a JSON header, then the blocks without a gap: the widest first,
so each is aligned when the file is mapped. The structure of the value is one text in the
metadata. Every reader of safetensors can open it; `_codec.py` is the one that makes a
value of it.

A file is vouched for by a hash over its header and the hashes of its blocks, which the digest
of the value is made of too: nothing large is hashed twice.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import msgspec
from blake3 import blake3

from soma.cache._digest import encode_block
from soma.cache._parts import Block, Buffer

NAME = "soma"  # of the structure, in the metadata
ALIGNED = 64
LONGEST = 100_000_000  # bytes of a header, as in the safetensors library
REPEATED = 4_096  # bytes of a header that is likely to be read again, as that of one array
FILE = b"soma file 1:"

WIDTHS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """What a header says of one tensor."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


_header = msgspec.json.Decoder(dict[str, msgspec.Raw])
_metadata = msgspec.json.Decoder(dict[str, str])
_entry = msgspec.json.Decoder(_Entry)


def write(structure: str, blocks: Sequence[Block]) -> tuple[Buffer, ...]:
    """Return the buffers that make a file when written one after the other.

    Raises:
        ValueError: the header would be too long to be read again.
    """
    entries: dict[str, object] = {"__metadata__": {NAME: structure}}
    order = sorted(range(len(blocks)), key=lambda number: -WIDTHS[blocks[number].dtype])
    begin = 0
    for number in order:
        data, dtype, shape = blocks[number]
        end = begin + len(data)
        entries[str(number)] = _Entry(
            dtype, list((len(data),) if shape is None else shape), (begin, end)
        )
        begin = end
    header = msgspec.json.encode(entries)
    header += b" " * (-(8 + len(header)) % ALIGNED)
    if len(header) > LONGEST:
        raise ValueError(f"its structure takes more than {LONGEST:,} bytes")
    size = len(header).to_bytes(8, "little")
    return (size + header, *(blocks[number].data for number in order))


def read(file: memoryview) -> tuple[str, list[memoryview]]:
    """Return the structure and the blocks, as views of the file.

    Raises:
        ValueError: this is no such file.
    """
    size = int.from_bytes(file[:8], "little")
    if len(file) < 8 or size > min(LONGEST, len(file) - 8):
        raise ValueError("a header that is not whole")
    start = 8 + size
    look = _layout if size <= REPEATED else _layout.__wrapped__
    structure, places = look(bytes(file[8:start]), len(file) - start)
    return structure, [file[start + begin : start + end] for begin, end in places]


@lru_cache(maxsize=512)
def _layout(header: bytes, size: int) -> tuple[str, list[tuple[int, int]]]:
    """Return the structure, and where each block is, by a header before so many bytes of data."""
    entries = _header.decode(header)
    metadata = _metadata.decode(entries.pop("__metadata__", b"{}"))
    found = {name: _entry.decode(entry) for name, entry in entries.items()}
    _check(list(found.values()), size)
    return metadata[NAME], [found[str(number)].data_offsets for number in range(len(found))]


def hash_parts(header: Buffer, blocks: Sequence[bytes]) -> str:
    """Return the hash of a file.

    Args:
        header: all that stands before the first block.
        blocks: what `encode_block` gives for each, in their order.
    """
    hasher = blake3(FILE + b"%d:" % len(header))
    hasher.update(header)
    hasher.update(b"".join(blocks))
    return hasher.hexdigest()


def hash_file(file: memoryview) -> str:
    """Return the hash of a file as it is read; whatever is no such file is all header."""
    try:
        _, blocks = read(file)
    except Exception:  # damage takes every form
        blocks = []
    header = file[: len(file) - sum(map(len, blocks))]
    return hash_parts(header, [encode_block(block) for block in blocks])


def _check(entries: list[_Entry], size: int) -> None:
    """Raise unless the entries fill a file's data without a gap or an overlap."""
    place = 0
    for entry in sorted(entries, key=lambda entry: entry.data_offsets):
        begin, end = entry.data_offsets
        if begin != place or end < begin or min(entry.shape, default=0) < 0:
            raise ValueError("blocks with gaps between them, or that overlap")
        if end - begin != WIDTHS[entry.dtype] * prod(entry.shape):
            raise ValueError("a block of another size than its shape")
        place = end
    if place != size:
        raise ValueError("a file of another size than its blocks")

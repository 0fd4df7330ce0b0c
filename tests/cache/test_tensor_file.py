"""The container is a plain safetensors file, and only a whole one is read."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from soma.cache import _tensor_file
from soma.cache._codec import encode
from soma.cache._parts import Block


def written(structure: str, *blocks: Block) -> bytes:
    """Write a file in memory."""
    return b"".join(_tensor_file.write(structure, blocks))


def test_what_is_written_is_read() -> None:
    """The structure and every block come back, in their order."""
    blocks = [
        Block(b"abc"),
        Block(b"12345678" * 2, "F64", (2,)),
        Block(b""),
        Block(b"1234", "F32", ()),
    ]
    structure, back = _tensor_file.read(memoryview(written('{"é": "\\n"}', *blocks)))

    assert structure == '{"é": "\\n"}'
    assert [bytes(data) for data in back] == [block.data for block in blocks]


def test_data_is_aligned() -> None:
    """The data starts at a multiple of 64 bytes, and wide blocks come first."""
    file = written("x" * 17, Block(b"abc"), Block(b"12345678", "F64", (1,)))
    start = 8 + int.from_bytes(file[:8], "little")

    assert start % 64 == 0
    assert file[start:] == b"12345678abc"


def test_other_readers_see_the_arrays(tmp_path: Path) -> None:
    """The safetensors library reads a stored value's arrays, types and shapes."""
    weights, steps = np.random.default_rng(0).random((30, 40)), np.arange(7, dtype="i2")
    encoded = encode({"w": np.asfortranarray(weights), "n": steps, "t": ["a"] * 40})
    assert encoded.blob is not None
    file = tmp_path / "value"
    file.write_bytes(b"".join(encoded.blob))
    seen = load_file(file)

    np.testing.assert_array_equal(seen["0"], weights)
    np.testing.assert_array_equal(seen["1"], steps)


def forged(entries: dict[str, object], data: bytes = b"12345678") -> bytes:
    """Write a file by hand."""
    header = json.dumps({"__metadata__": {"soma": ""}, **entries}).encode()
    return len(header).to_bytes(8, "little") + header + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    """Write one entry of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


BAD = {
    "empty": b"",
    "short": b"1234567",
    "a header without end": (2**60).to_bytes(8, "little") + b"{}",
    "not an object": (2).to_bytes(8, "little") + b"[]",
    "brackets": (90_000).to_bytes(8, "little") + b'{"0":' + b"[" * 90_000,
    "another's file": save({"0": np.ones(1)}),
    "a gap": forged({"0": entry("U8", [7], 1, 8)}),
    "an overlap": forged({"0": entry("U8", [8], 0, 8), "1": entry("U8", [4], 4, 8)}),
    "too long": forged({"0": entry("U8", [9], 0, 9)}),
    "too short": forged({"0": entry("U8", [7], 0, 7)}),
    "another shape": forged({"0": entry("F32", [1], 0, 8)}),
    "negative shape": forged({"0": entry("U8", [-2, -4], 0, 8)}),
    "negative place": forged({"0": entry("U8", [8], -8, 0)}),
    "unknown type": forged({"0": entry("F128", [1], 0, 8)}),
    "another name": forged({"a": entry("U8", [8], 0, 8)}),
    "another field": forged({"0": {**entry("U8", [8], 0, 8), "x": 1}}),
    "a shape of text": forged({"0": {**entry("U8", [8], 0, 8), "shape": "8"}}),
}


@pytest.mark.parametrize("file", BAD.values(), ids=BAD)
def test_broken_files_are_refused(file: bytes) -> None:
    """Gaps, overlaps, wrong sizes and headers that are none raise before anything is made."""
    with pytest.raises((ValueError, LookupError, RecursionError)):
        _tensor_file.read(memoryview(file))


def test_a_file_without_blocks_is_read() -> None:
    """A structure alone is a file too."""
    assert _tensor_file.read(memoryview(written("x"))) == ("x", [])


def test_every_bit_of_a_file_counts() -> None:
    """A flip in the header, the padding, a small block or a large one brings another hash."""
    blocks = [Block(b"abc"), Block(bytes(range(250)) * 10), Block(b"12345678", "F64", (1,))]
    file = bytearray(written("{}", *blocks))
    hashes = {_tensor_file.hash_file(memoryview(file))}
    for at in range(len(file)):
        file[at] ^= 1 << at % 8
        hashes.add(_tensor_file.hash_file(memoryview(file)))
        file[at] ^= 1 << at % 8

    assert len(hashes) == len(file) + 1


def test_a_value_is_written_with_the_hash_that_its_file_has() -> None:
    """What is known before writing is what a reader finds."""
    encoded = encode({"a": np.ones(9_000), "b": [1.5] * 40, "c": np.arange(7, dtype="i2")})
    assert encoded.blob is not None

    assert encoded.blob_hash == _tensor_file.hash_file(memoryview(b"".join(encoded.blob)))

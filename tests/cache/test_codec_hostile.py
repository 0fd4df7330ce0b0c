"""A stored form that is damaged, or made to harm, is a miss and nothing more."""

import sys
import tracemalloc
from dataclasses import make_dataclass
from enum import Enum

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from soma.cache._codec import Undecodable, decode_blob, decode_inline, encode
from soma.cache._digest import digest
from tests.cache import values
from tests.cache.values import VALUES, Colour, Point, Settings

TEXTS = [text for text in (encode(value).inline for value in VALUES) if text is not None]
FILE = encode(
    {"a": np.arange(600.0), "t": torch.ones(9), "s": {"x"}, "l": [0.5] * 99, "b": b"y" * 5000}
)
assert FILE.blob is not None
BLOB = b"".join(FILE.blob)

EDITS = st.lists(
    st.tuples(st.integers(0, 2**16), st.integers(0, 9), st.binary(max_size=9)),
    min_size=1,
    max_size=4,
)


def edited(whole: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Replace a few pieces of a text."""
    for place, length, piece in edits:
        place %= len(whole) + 1
        whole = whole[:place] + piece + whole[place + length :]
    return whole


@settings(max_examples=500)
@given(st.sampled_from(TEXTS), EDITS)
def test_damaged_texts_are_misses(text: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    """A damaged text is another value or none, and raises nothing else."""
    try:
        back = decode_inline(edited(text, edits))
    except Undecodable:
        return
    digest(back)


@settings(max_examples=500)
@given(EDITS, st.booleans(), st.integers(0, len(BLOB)))
def test_damaged_files_are_misses(
    edits: list[tuple[int, int, bytes]], copy: bool, end: int
) -> None:
    """A damaged or torn file is another value or none, and raises nothing else."""
    for damaged in (edited(BLOB, edits), BLOB[:end]):
        try:
            back = decode_blob(memoryview(damaged), copy=copy)
        except Undecodable:
            continue
        digest(back)


SMALL_NUMBERS = st.sampled_from([-1, 0, 1, 2, 2**31, 2**62])
ITEMS = st.lists(
    st.lists(SMALL_NUMBERS, max_size=2) | SMALL_NUMBERS | st.text(max_size=3), max_size=4
)
KINDS = sorted({row[0] for text in TEXTS for row in msgspec.json.decode(text).get("rows", [])})
ROW = st.tuples(
    st.sampled_from([*KINDS, "nothing"]),
    ITEMS,
    st.lists(
        st.sampled_from(["<f8", "|S1", "<U9", "O", "float32", "floats", "texts", 0, -1, 2**40]),
        max_size=4,
    ),
    st.none() | SMALL_NUMBERS,
    st.lists(st.sampled_from(["F", True, "meta", "cuda:0"]), max_size=2),
)


@settings(max_examples=1000)
@given(st.lists(ROW, max_size=5), st.lists(st.binary(max_size=16), max_size=2))
def test_forged_texts_are_misses(rows: list[object], blocks: list[bytes]) -> None:
    """A text of well-formed rows that nobody wrote is another value or none."""
    document = {"soma": 1, "value": [len(rows) - 1], "rows": rows, "blocks": blocks}
    try:
        decode_inline(msgspec.json.encode(document))
    except Undecodable:
        return


def forged(*rows: list[object], **more: object) -> bytes:
    """Write a text by hand; its value is the last row."""
    return msgspec.json.encode({"soma": 1, "value": [len(rows) - 1], "rows": rows, **more})


HUGE = [["numpy.array", [], ["<f8", 2**40], 0, []], ["torch.tensor", [], ["float32", 2**40], 0, []]]
TWICE = ["numpy.array", [], ["|u1", 1], 0, []]
ATTACKS = {
    "empty": b"",
    "not text": b"\xff\xfe",
    "not an object": b"[]",
    "brackets": b"[" * 50_000,
    "brackets inside": b'{"soma":1,"value":' + b"[" * 50_000,
    "pickle": b"cos\nsystem\n(S'true'\ntR.",
    "newer": b'{"soma":2,"value":1}',
    "unknown fields": b'{"soma":1,"value":1,"x":1}',
    "unknown kind": forged(["os.system", ["true"]]),
    "a later row": forged(["list", [[1]]], ["list", []]),
    "itself": forged(["list", [[0]]]),
    "a negative row": forged(["list", []], ["list", [[-1]]]),
    "no such block": forged(TWICE),
    "a block twice": forged(TWICE, TWICE, ["list", [[0], [1]]], blocks=[b"x"]),
    "huge array": forged(HUGE[0], blocks=[b"x"]),
    "huge tensor": forged(HUGE[1], blocks=[b"x"]),
    "huge letters": forged(["numpy.array", [], ["<U999999999", 1], 0, []], blocks=[b"x"]),
    "negative size": forged(["numpy.array", [], ["|u1", -1, -1], 0, []], blocks=[b"x"]),
    "object array": forged(["numpy.array", [], ["|O", 1], 0, []], blocks=[b"x" * 8]),
    "letters that do not exist": forged(
        ["numpy.array", [], ["<U1", 1], 0, []], blocks=[b"\xff" * 4]
    ),
    "many texts": forged(["list", [], ["texts"], 0], blocks=[(2**60).to_bytes(8, "little")]),
    "bytes of a number": forged(["bytes", [2**40]]),
    "unhashable": forged(["list", []], ["set", [[0]]]),
    "half a pair": forged(["dict", [1]]),
    "a zone of files": forged(["ZoneInfo", ["../../etc/passwd"]]),
    "a module not imported": forged(["enum", [1], ["turtledemo.clock", "Colour", "RED"]]),
    "no class": forged(["dataclass", [1], ["os", "system", "x"]]),
    "no dataclass": forged(["dataclass", [], ["subprocess", "Popen"]]),
    "a member with another value": forged(["enum", [7], [Colour.__module__, "Colour", "RED"]]),
    "other fields": forged(["dataclass", [1], [Settings.__module__, "Settings", "speed"]]),
    "too few fields": forged(["namedtuple", [1], [Point.__module__, "Point", "x", "y"]]),
    "meta device": forged(["torch.tensor", [], ["float32", 0], 0, [False, "meta"]], blocks=[b""]),
    "deep keys": forged(["tuple", []], *(["tuple", [[row]]] for row in range(5_000))),
    "shared keys": forged(
        ["tuple", [1]], *(["tuple", [[row], [row]]] for row in range(60)), ["set", [[60]]]
    ),
    "sparse that points outside": forged(
        *(
            ["numpy.array", [], [kind, count], number, []]
            for number, (kind, count) in enumerate([("<f8", 1), ("<i4", 1), ("<i4", 2)])
        ),
        ["scipy.sparse", [[0], [1], [2]], ["csr_array", 1, 1]],
        blocks=[b"x" * 8, b"x" * 4, b"\0\0\0\0\1\0\0\0"],
    ),
}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_attacks_are_misses(text: bytes) -> None:
    """A text made to harm is refused, imports nothing and asks for no memory."""
    before = set(sys.modules)
    tracemalloc.start()
    with pytest.raises(Undecodable):
        decode_inline(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 5_000_000
    assert not {name for name in set(sys.modules) - before if name.startswith("turtle")}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Settings", make_dataclass("Settings", ["rate"])),
        ("Colour", Enum("Colour", {"RED": 2})),
        ("Colour", int),
        ("Point", tuple),
    ],
)
def test_a_class_that_changed_is_a_miss(
    name: str, other: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored dataclass, enum member or named tuple needs its class as it was."""
    stored = {"Settings": Settings(0.1), "Colour": Colour.RED, "Point": Point(1.0, 2.0)}[name]
    text = encode(stored).inline
    assert text is not None
    monkeypatch.setattr(values, name, other)

    with pytest.raises(Undecodable):
        decode_inline(text)


def test_a_missing_library_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array cannot be read where NumPy is not installed, and says so."""
    text = encode(np.ones(3, "u2")).inline
    assert text is not None
    monkeypatch.setitem(sys.modules, "numpy", None)

    with pytest.raises(Undecodable, match="pip install"):
        decode_inline(text)

"""Values of every kind that the cache stores, for the tests of digests and codecs."""

from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from struct import unpack
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import torch
from hypothesis import strategies as st
from scipy import sparse

ODD_NAN: float = unpack("<d", b"\x01\0\0\0\0\0\xf8\xff")[0]


class Colour(Enum):
    """An enum."""

    RED = 1
    BLUE = "blue"


class Level(IntEnum):
    """An enum whose members are integers."""

    LOW = 1


class Rights(Flag):
    """An enum whose members add up."""

    READ = 1
    WRITE = 2


class Point(NamedTuple):
    """A named tuple."""

    x: float
    y: float


Pair = namedtuple("Pair", "left right")


@dataclass
class Settings:
    """A dataclass."""

    rate: float
    layers: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A dataclass without a dict."""

    name: str


PLAIN = [
    *(None, True, False, 0, 1, -1, 127, 128, 2**53, 2**53 + 1, -(2**80), 10**5000),
    *(0.0, -0.0, 1.0, 0.1, 5e-324, float("inf"), -float("inf"), float("nan"), ODD_NAN),
    *(
        1j,
        complex(-0.0, float("nan")),
        "",
        "1",
        "é",
        "\0",
        "\ud800",
        "\ud83d\ude00",
        "😀",
        "x" * 5000,
    ),
    *(b"", b"1", b"\0" * 5000, bytearray(b"1"), range(3), range(0, 9, 2), slice(None, 3), ...),
]
TIMES = [
    *(date(2024, 2, 29), time(1, 2, 3, 4), time(1, tzinfo=UTC), timedelta(days=-1, microseconds=1)),
    *(
        UTC,
        timezone(timedelta(hours=1)),
        timezone(timedelta(hours=1), "CET"),
        ZoneInfo("Europe/Rome"),
    ),
    *(datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
    *(datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Rome"), fold=fold) for fold in (0, 1)),
]
NUMBERS = [
    *(
        Decimal("1.0"),
        Decimal("1.00"),
        Decimal("-0"),
        Decimal("NaN12"),
        Decimal("-sNaN"),
        Decimal("Infinity"),
    ),
    *(Decimal("1E+400"), Fraction(1, 3), Fraction(2**70, 3), UUID(int=7)),
    *(Path("a/b"), PurePosixPath("a/b"), PureWindowsPath("a\\b")),
]
CONTAINERS = [
    *(
        [],
        [1],
        [1.0],
        ["1"],
        (1,),
        (),
        [(1,)],
        [[1]],
        {},
        {1: 2},
        {"1": 2},
        {True: 2},
        {(1, 2): [3]},
    ),
    *({1: 1, 2: 2}, {2: 2, 1: 1}, set(), {1}, {"a", "b"}, {1, "a", None}, frozenset({1})),
    *(
        OrderedDict(a=1),
        Counter("aab"),
        defaultdict(list, a=[1]),
        defaultdict(None),
        deque([1], 3),
        deque([1]),
    ),
    *([0.5] * 100, [1] * 100, [True] * 100, ["é\ud800"] * 100, ["ab", ""] * 50, [2**70] * 100),
    *((0.5,) * 100, [1.0, 1] * 50, [None] * 100, [ODD_NAN] * 100, list(range(100)), [-0.0] * 32),
    *(
        {"a": None, "b": [1, {"c": (2.5, b"x")}]},
        [{"text": f"row {i}", "label": i} for i in range(200)],
    ),
]
CLASSES = [
    *(Colour.RED, Colour.BLUE, Level.LOW, Rights.READ, Rights.READ | Rights.WRITE, Rights(0)),
    *(Point(1.0, 2.0), Pair(1, [2]), Settings(0.1), Settings(0.1, [1, 2]), Frozen("a")),
]
_GRID = np.arange(24.0).reshape(4, 6)
_TYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
ARRAYS = [
    *(np.arange(6).astype(name).reshape(2, 3) for name in _TYPES),
    *(
        np.arange(6).astype(name)
        for name in (">i4", ">f8", ">c16", "M8[ns]", "m8[s]", "M8[D]", "M8[25s]")
    ),
    *(_GRID, np.asfortranarray(_GRID), _GRID.T, _GRID[:, ::2], _GRID[::-1], _GRID[1:3], _GRID[:0]),
    *(np.array(1.0), np.array(True), np.zeros((0, 3)), np.zeros((3, 0), "i4"), np.full(3, ODD_NAN)),
    *(
        np.array(["a", "é😀"]),
        np.array([b"a", b"bc"]),
        np.array(["a"], ">U3"),
        np.broadcast_to(1.0, (2, 3)),
        np.arange(9)[::2],
        np.arange(9)[::-1],
    ),
    *(
        np.float64(1),
        np.float32(1),
        np.int64(1),
        np.bool_(True),
        np.complex64(1j),
        np.datetime64("2024-01-01"),
    ),
    *(np.timedelta64(1, "s"), np.str_("a"), np.str_(""), np.bytes_(b"a"), np.float64("nan")),
    *(np.dtype("f4"), np.dtype("M8[ns]"), np.random.default_rng(0).random((64, 64))),
    *(
        sparse.csr_matrix(np.eye(3)),
        sparse.csc_array(np.eye(3)),
        sparse.csr_array((2, 2), dtype="i4"),
    ),
]
_CUBE = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
_FLOATS = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float64)
_WHOLES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16)
TENSORS = [
    *(_CUBE.to(dtype) for dtype in (*_FLOATS, *_WHOLES, torch.complex64, torch.complex128)),
    *(_CUBE, _CUBE.mT, _CUBE[:, ::2], _CUBE.flip(0), _CUBE[:0], torch.tensor(1), torch.tensor(1.0)),
    *(
        torch.zeros(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2).expand(3, 2),
    ),
    *(torch.complex(_CUBE, _CUBE).conj(), torch.nn.Parameter(torch.ones(2), requires_grad=False)),
    *(torch.Size([1, 2]), torch.float32, torch.device("cpu"), torch.rand(64, 64)),
]
VALUES = [*PLAIN, *TIMES, *NUMBERS, *CONTAINERS, *CLASSES, *ARRAYS, *TENSORS]


def names(values: Sequence[object]) -> list[str]:
    """Name values for the report of a test."""
    return [f"{number}-{type(value).__name__}" for number, value in enumerate(values)]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.characters()
    | st.binary()
)
NESTED = st.recursive(
    SCALARS | st.complex_numbers() | st.datetimes() | st.decimals() | st.fractions() | st.uuids(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(SCALARS, inner)
        | st.sets(SCALARS)
        | st.lists(st.floats(), min_size=30, max_size=40)
        | st.lists(st.text(), min_size=30, max_size=40)
    ),
    max_leaves=20,
)

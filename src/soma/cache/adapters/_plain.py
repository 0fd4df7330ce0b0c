"""Bytes, and the small types of the standard library that are not about time."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from types import EllipsisType
from uuid import UUID

from soma.cache._parts import Block, Parts, PutTogether, Stored, TakeApart

PATHS = {cls.__name__: cls for cls in (PurePosixPath, PureWindowsPath, PosixPath, WindowsPath)}


def find(cls: type) -> TakeApart | None:
    """Return how a plain value is taken apart."""
    return _TAKERS.get(cls)


def _bytes(value: bytes) -> Parts:
    return Parts("bytes", block=Block(value))


def _bytearray(value: bytearray) -> Parts:
    return Parts("bytearray", block=Block(value))


def _complex(value: complex) -> Parts:
    return Parts("complex", (value.real, value.imag))


def _build_complex(stored: Stored) -> object:
    real, imaginary = stored.items
    return complex(real, imaginary)


def _range(value: range) -> Parts:
    return Parts("range", (value.start, value.stop, value.step))


def _slice(value: slice) -> Parts:
    return Parts("slice", (value.start, value.stop, value.step))


def _decimal(value: Decimal) -> Parts:
    sign, digits, exponent = value.as_tuple()
    return Parts("Decimal", (sign, bytes(digits).translate(_DIGITS).decode(), exponent))


def _build_decimal(stored: Stored) -> object:
    sign, digits, exponent = stored.items
    return Decimal((sign, tuple(map(int, digits)), exponent))


def _fraction(value: Fraction) -> Parts:
    return Parts("Fraction", (value.numerator, value.denominator))


def _build_fraction(stored: Stored) -> object:
    numerator, denominator = stored.items
    return Fraction(numerator, denominator)


def _uuid(value: UUID) -> Parts:
    return Parts("UUID", (value.int,))


def _build_uuid(stored: Stored) -> object:
    (number,) = stored.items
    return UUID(int=number)


def _path(value: PurePath) -> Parts:
    return Parts("path", (value.__fspath__(),), facts=(type(value).__name__,))


def _build_path(stored: Stored) -> object:
    (name,), (path,) = stored.facts, stored.items
    return PATHS[name](path)


def _ellipsis(value: EllipsisType) -> Parts:
    return Parts("Ellipsis")


_DIGITS = bytes.maketrans(bytes(range(10)), b"0123456789")

_TAKERS: dict[type, TakeApart] = {
    bytes: _bytes,
    bytearray: _bytearray,
    complex: _complex,
    range: _range,
    slice: _slice,
    Decimal: _decimal,
    Fraction: _fraction,
    UUID: _uuid,
    EllipsisType: _ellipsis,
    type(Path()): _path,
    PurePosixPath: _path,
    PureWindowsPath: _path,
}

BUILDERS: dict[str, PutTogether] = {
    "bytes": lambda stored: bytes(memoryview(stored.bytes())),
    "bytearray": lambda stored: bytearray(memoryview(stored.bytes())),
    "complex": _build_complex,
    "range": lambda stored: range(*stored.items),
    "slice": lambda stored: slice(*stored.items),
    "Decimal": _build_decimal,
    "Fraction": _build_fraction,
    "UUID": _build_uuid,
    "path": _build_path,
    "Ellipsis": lambda stored: ...,
}

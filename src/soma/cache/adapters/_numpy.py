"""NumPy arrays and scalars: type, byte order, shape and logical values.

Strides are no part of a value. The memory order of a Fortran array comes back all the
same, because sums over it round in another order.
"""

import re
from functools import lru_cache
from math import prod
from typing import Any

from soma._extras import loaded, require
from soma.cache._parts import Block, Parts, PutTogether, Refused, Stored, TakeApart

DTYPE = re.compile(r"[<>|][biufcmMSU][0-9]{1,9}(\[[0-9]{0,9}[A-Za-z]{1,2}\])?")
UNICODE = 0x10FFFF


def find(cls: type) -> TakeApart | None:
    """Return how an array, a scalar or a dtype is taken apart."""
    np = loaded("numpy")
    if np is None:
        return None
    if cls is np.ndarray:
        return _array
    if cls is np.memmap:
        return _mapped
    if cls in (np.str_, np.bytes_):
        return _text
    if issubclass(cls, np.generic):
        return _scalar
    if issubclass(cls, np.dtype):
        return _dtype
    return None


def _array(value: Any) -> Parts:
    shape, text = value.shape, value.dtype.str
    seen, tail = _seen(text, value.dtype)
    flags = value.flags
    data: Any = b""
    if value.nbytes:
        whole = text in _READABLE and flags.c_contiguous
        data = value.data.cast("B") if whole else value.ravel().view("u1").data
    fortran = flags.f_contiguous and not flags.c_contiguous
    return Parts(
        "numpy.array",
        facts=(text, *shape),
        block=Block(data, seen, None if tail is None else (*shape, *tail)),
        aside=("F",) if fortran else (),
    )


def _mapped(value: Any) -> Parts:
    """An array in a file is its content, which is read at each digest: files change."""
    array = value.view(require("numpy", extra="torch").ndarray)
    return Parts("numpy.memmap", (array,), unstorable="it stands in a file that may change")


def _build_array(stored: Stored) -> object:
    np = require("numpy", extra="torch")
    text, *shape = stored.facts
    dtype = _read_dtype(text)
    if len(stored.bytes()) != prod(shape) * dtype.itemsize:
        raise ValueError("an array of another size than its bytes")
    if min(shape, default=0) < 0:
        raise ValueError("an array of negative size")
    array = np.frombuffer(stored.memory(), dtype).reshape(shape)
    if dtype.kind == "U" and array.size:
        letters = np.frombuffer(stored.bytes(), dtype.str[0] + "u4")
        if letters.max() > UNICODE:
            raise ValueError("letters that do not exist")
    return np.asfortranarray(array) if stored.aside == ("F",) else array


def _scalar(value: Any) -> Parts:
    text = value.dtype.str
    _seen(text, value.dtype)
    return Parts("numpy.scalar", facts=(text,), block=Block(value.tobytes()))


def _build_scalar(stored: Stored) -> object:
    np: Any = require("numpy", extra="torch")
    (text,) = stored.facts
    (value,) = np.frombuffer(stored.bytes(), _read_dtype(text))
    return value


def _text(value: Any) -> Parts:
    return Parts("numpy.text", (value.item(),))


def _build_text(stored: Stored) -> object:
    np: Any = require("numpy", extra="torch")
    (text,) = stored.items
    return np.str_(text) if isinstance(text, str) else np.bytes_(memoryview(text))


def _dtype(value: Any) -> Parts:
    _seen(value.str, value)
    return Parts("numpy.dtype", (value.str,))


def _build_dtype(stored: Stored) -> object:
    (text,) = stored.items
    return _read_dtype(text)


@lru_cache(maxsize=256)
def _read_dtype(text: str) -> Any:
    """Return a dtype that a file names."""
    np = require("numpy", extra="torch")
    if not DTYPE.fullmatch(text):
        raise ValueError(f"{text!r} is no type of an array")
    dtype = np.dtype(text)
    if dtype.str != text or dtype.itemsize == 0:
        raise ValueError(f"{text!r} is no type of an array")
    return dtype


@lru_cache(maxsize=256)
def _seen(text: str, dtype: Any) -> tuple[str, tuple[int, ...] | None]:
    """Return the type that other readers of the file see, and the shape of one item in it.

    Raises:
        Refused: the bytes are not the value, or not the same on each machine.
    """
    if dtype.kind == "O":
        raise Refused("an object array has no codec; a list of its items may have one")
    if not DTYPE.fullmatch(text) or dtype.itemsize == 0:
        raise Refused(f"the NumPy type {dtype.name} has no codec")
    if dtype.kind in "fc" and dtype.name not in _KNOWN:
        raise Refused(f"the NumPy type {dtype.name} differs between machines")
    if text[0] == ">":
        return "U8", None
    match dtype.kind:
        case "S":
            return "U8", (dtype.itemsize,)
        case "U":
            return "U32", (dtype.itemsize // 4,)
        case "c":
            return _KNOWN[dtype.name], (2,)
        case "m" | "M":
            return "I64", ()
        case _:
            return _KNOWN[dtype.name], ()


_KNOWN = {
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    "bool": "BOOL",
    "complex64": "F32",
    "complex128": "F64",
}

_READABLE = frozenset({"|i1", "|u1", "<i4", "<i8", "<f4", "<f8"})  # Python knows their memory

BUILDERS: dict[str, PutTogether] = {
    "numpy.array": _build_array,
    "numpy.scalar": _build_scalar,
    "numpy.text": _build_text,
    "numpy.dtype": _build_dtype,
}

"""What is stored comes back: the same type, the same bits, and memory of its own."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as shaped

from soma.cache._codec import Encoded, Unencodable, decode_blob, decode_inline, encode
from soma.cache._digest import digest
from tests.cache.values import ARRAYS, NESTED, TENSORS, VALUES, Settings, names

NUMBERS = shaped.integer_dtypes() | shaped.floating_dtypes(sizes=(16, 32, 64))
MOMENTS = shaped.datetime64_dtypes() | shaped.timedelta64_dtypes() | shaped.boolean_dtypes()
TEXTS = shaped.unicode_string_dtypes() | shaped.byte_string_dtypes()
TYPES = NUMBERS | MOMENTS | TEXTS | shaped.complex_number_dtypes(sizes=(64, 128))
WHOLE_ARRAYS = [value for value in ARRAYS if isinstance(value, np.ndarray)]
WHOLE_TENSORS = [value for value in TENSORS if isinstance(value, torch.Tensor)]


def decode(encoded: Encoded, *, copy: bool = True) -> object:
    """Read either form."""
    if encoded.inline is not None:
        return decode_inline(encoded.inline)
    assert encoded.blob is not None
    return decode_blob(memoryview(bytearray(b"".join(encoded.blob))), copy=copy)


@pytest.mark.parametrize("copy", [True, False], ids=["copied", "mapped"])
@pytest.mark.parametrize("value", VALUES, ids=names(VALUES))
def test_values_come_back(value: object, copy: bool) -> None:
    """Each value comes back in its own class, with the digest it was stored under."""
    encoded = encode(value)
    back = decode(encoded, copy=copy)

    assert type(back) is type(value)
    assert digest(back) == encoded.digest == digest(value)


@pytest.mark.parametrize("value", VALUES, ids=names(VALUES))
def test_values_come_back_inside_of_others(value: object) -> None:
    """A list of a value and many bytes is a file, and comes back as well."""
    outer = {"value": [value, value], "more": b"x" * 10_000}
    encoded = encode(outer)

    assert encoded.inline is None
    assert digest(decode(encoded)) == encoded.digest == digest(outer)


@given(NESTED)
def test_any_nesting_comes_back(value: object) -> None:
    """Any nesting of plain values comes back with its digest."""
    encoded = encode(value)

    assert digest(decode(encoded)) == encoded.digest == digest(value)


@given(shaped.arrays(TYPES, shaped.array_shapes(min_dims=0, min_side=0)), st.booleans())
def test_any_array_comes_back(array: np.ndarray, transposed: bool) -> None:
    """Any array of any type comes back bit for bit."""
    array = array.T if transposed else array
    back = decode(encode([array]))[0]  # type: ignore[index]

    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert digest(back) == digest(array)


@pytest.mark.parametrize("array", WHOLE_ARRAYS, ids=names(WHOLE_ARRAYS))
def test_arrays_come_back_bit_for_bit(array: np.ndarray) -> None:
    """Type, shape, bytes and memory order of an array come back, and it may be written to."""
    back = decode(encode([array] * 2 + [b"x" * 5000]))[0]  # type: ignore[index]

    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert back.flags.f_contiguous or not array.flags.f_contiguous
    assert back.flags.writeable


@pytest.mark.parametrize("tensor", WHOLE_TENSORS, ids=names(WHOLE_TENSORS))
def test_tensors_come_back_bit_for_bit(tensor: torch.Tensor) -> None:
    """Type, shape, items and `requires_grad` of a tensor come back."""
    back = decode(encode(tensor))

    assert isinstance(back, torch.Tensor)
    assert (back.dtype, back.shape, back.requires_grad) == (
        *(tensor.dtype, tensor.shape),
        tensor.requires_grad,
    )
    assert back.tolist() == tensor.tolist()


def test_one_object_stays_one_object() -> None:
    """An array, a tensor or a list that stands in a value twice still does after a trip."""
    array, tensor, items = np.ones(3), torch.ones(3), [1]
    back = decode(encode({"a": [array, tensor, items], "b": [array, tensor, items]}))

    assert all(one is other for one, other in zip(back["a"], back["b"], strict=True))  # type: ignore[index]


def test_two_hits_share_no_memory() -> None:
    """What one reader writes, no other reader sees."""
    encoded = encode({"a": np.zeros(1000), "t": torch.zeros(1000)})
    assert encoded.blob is not None
    file = memoryview(bytearray(b"".join(encoded.blob)))
    one, other = decode_blob(file, copy=True), decode_blob(file, copy=True)
    one["a"][:] = 1  # type: ignore[index]
    one["t"][:] = 1  # type: ignore[index]

    assert digest(other) == digest(decode_blob(file, copy=False)) == encoded.digest


def test_a_read_only_file_is_copied() -> None:
    """Arrays over memory that may not be written to get memory of their own."""
    encoded = encode([np.zeros(1000), torch.zeros(1000)])
    assert encoded.blob is not None
    array, tensor = decode_blob(memoryview(b"".join(encoded.blob)), copy=False)  # type: ignore[misc]
    array[0] = tensor[0] = 1

    assert array.flags.writeable


def test_a_mapped_array_lies_in_the_file() -> None:
    """Without a copy, a large array is the file itself, aligned for the processor."""
    encoded = encode([np.zeros(1000), b"x"])
    assert encoded.blob is not None
    file = bytearray(b"".join(encoded.blob))
    array, _ = decode_blob(memoryview(file), copy=False)  # type: ignore[misc]

    assert np.shares_memory(array, np.frombuffer(file, "u1"))
    assert array.flags.aligned


def test_large_arrays_are_not_copied_to_be_stored() -> None:
    """The buffers to write are views of a contiguous array."""
    array = np.zeros(100_000)
    encoded = encode({"w": array})
    assert encoded.blob is not None
    _, block = encoded.blob

    assert np.shares_memory(np.frombuffer(block, "u1"), array)
    assert encoded.size == sum(map(len, encoded.blob))


def test_small_values_are_strict_json() -> None:
    """A small value is text that any JSON reader takes, whatever it holds."""
    encoded = encode([float("nan"), 2**70, "\ud800", np.arange(3.0), (True, None)])

    assert encoded.inline is not None
    assert msgspec.json.decode(encoded.inline)["soma"] == 1
    assert encoded.inline.isascii()


@pytest.mark.parametrize(("count", "inline"), [(300, True), (3_000, False)])
def test_only_small_values_stand_inline(count: int, inline: bool) -> None:
    """A value of more than 4 KB is a file."""
    assert (encode(b"x" * count * 2).inline is not None) == inline


def made_inside() -> object:
    """Make an object whose class cannot be found by name."""

    @dataclass
    class Hidden:
        a: int = 1

    return Hidden()


def with_more() -> object:
    """Make a dataclass that holds more than its fields."""
    value = Settings(0.1)
    value.more = 1  # type: ignore[attr-defined]
    return value


@pytest.mark.parametrize(
    ("make", "path", "reason"),
    [
        (lambda: {"out": torch.ones(2, requires_grad=True) * 2}, "['out']", "autograd graph"),
        (lambda: [object()], "[0]", "no codec"),
        (made_inside, "", "at the top of a module"),
        (with_more, "", "holds more, which no field declares"),
        (lambda: [np.array([{}])], "[0]", "object array"),
    ],
    ids=["graph", "object", "hidden class", "more than fields", "object array"],
)
def test_what_cannot_be_stored_says_where_and_why(
    make: Callable[[], object], path: str, reason: str
) -> None:
    """A value that would not come back is refused with the path to it and a reason."""
    with pytest.raises(Unencodable) as refused:
        encode(make())

    assert refused.value.path == path
    assert reason in refused.value.reason


def test_endless_sharing_is_not_stored() -> None:
    """A value whose parts are shared a billion times is refused: nobody could walk it."""
    value: list[object] = []
    for _ in range(30):
        value = [value, value]

    with pytest.raises(Unencodable, match="shares parts too often"):
        encode(value)

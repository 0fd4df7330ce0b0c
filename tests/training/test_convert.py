"""Values at the border of a module: what changes, what stays, and what it becomes."""

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.sparse import csr_matrix

from soma.errors import InvalidInput
from soma.training._convert import (
    Wanted,
    detached,
    kind_of,
    mirrored,
    to_tensors,
    wants_gradient,
)
from soma.training._targets import as_target

CPU = torch.device("cpu")
FLOATS = Wanted(torch.float32, CPU, keeps_integers=False)
LOOK_UPS = Wanted(torch.float32, CPU, keeps_integers=True)
Pair = namedtuple("Pair", "a b")


@dataclass(frozen=True, slots=True)
class Record:
    a: object
    size: int = 3


class Output(OrderedDict):
    """Shows its entries as attributes, as model outputs do."""

    def __init__(self, needed: object, **entries: object) -> None:
        super().__init__(**entries)
        self.needed = needed

    def __getattr__(self, name: str) -> object:
        if name in self:
            return self[name]
        raise AttributeError(name)


CONTAINERS = {
    "dict": lambda one: {"a": one},
    "ordered": lambda one: OrderedDict(a=one),
    "default": lambda one: defaultdict(list, a=one),
    "output": lambda one: Output(one, a=one),
    "tuple": lambda one: (one, "text"),
    "pair": lambda one: Pair(one, "text"),
    "record": Record,
    "list": lambda one: [1.0, one],
    "nested": lambda one: {"a": [(Record(one), None)]},
    "results": lambda one: torch.return_types.max([one, one]),
}
containers = pytest.mark.parametrize("wrap", CONTAINERS.values(), ids=CONTAINERS)


@containers
def test_a_detached_container_asks_for_no_gradient(wrap) -> None:
    """A tensor is cut wherever it lies, in a container of the same type."""
    value = wrap(torch.ones(2, requires_grad=True) * 1)
    cut = detached(value)

    assert wants_gradient(value)
    assert not wants_gradient(cut)
    assert type(cut) is type(value)
    assert wants_gradient(value)


@containers
@pytest.mark.parametrize("function", [detached, lambda value: mirrored(value, "tensor")])
def test_a_container_without_changes_comes_back_itself(wrap, function) -> None:
    """Nothing is copied where nothing is exchanged."""
    value = wrap(torch.ones(2))

    assert function(value) is value


@containers
def test_outputs_on_arrays_are_arrays_and_tensors_again(wrap) -> None:
    """Mirroring keeps the container, and a module after it gets tensors in it."""
    value = wrap(torch.ones(2))
    arrays = mirrored(value, "array")

    assert type(arrays) is type(value)
    assert kind_of(arrays) == "array"
    assert kind_of(to_tensors(arrays, FLOATS)) == "tensor"
    assert type(to_tensors(arrays, FLOATS)) is type(value)


def test_attributes_of_an_output_are_exchanged_with_its_entries() -> None:
    """An attribute that is an entry stays that entry; a number beside it stays a number."""
    value = Output(3, logits=np.ones(2))
    value.shown = value["logits"]
    given = to_tensors(value, FLOATS)

    assert isinstance(given.logits, torch.Tensor)
    assert given.shown is given["logits"]
    assert given.needed == 3


def test_numbers_in_records_stay() -> None:
    """The size in a record is a setting; a number in a plain dict is data."""
    assert to_tensors(Record(np.ones(2)), FLOATS).size == 3
    assert torch.equal(to_tensors({"a": 2}, FLOATS)["a"], torch.tensor(2.0))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3)[::-1],
        np.arange(6.0).reshape(2, 3)[:, ::-1],
        np.arange(3, dtype=">f4"),
        np.arange(3, dtype=np.longdouble),
        np.arange(3, dtype=np.float16),
        np.array([True, False]),
        np.zeros(3, dtype=[("name", "S3"), ("x", "<f4")])["x"],
        np.array([1, 2], np.uint16),
        np.array([2**63], np.uint64),
        np.asarray([2**63]),
        np.array([2**62], np.longlong),
    ],
    ids=lambda array: f"{array.dtype.str}-{array.dtype.char} {array.strides}",
)
def test_every_numeric_array_becomes_the_same_numbers(array: np.ndarray) -> None:
    """Byte order, direction and sign of an array do not matter to the tensor."""
    expected = torch.tensor([float(one) for one in array.flat]).reshape(array.shape)

    assert torch.equal(to_tensors(array, FLOATS), expected)
    assert torch.equal(to_tensors(array.tolist(), FLOATS), expected)


@pytest.mark.parametrize("dtype", [">c8", np.complex64, np.clongdouble])
def test_complex_arrays_stay_complex(dtype) -> None:
    """Whatever their bytes, also against the grain."""
    array = np.array([1j, 2], dtype)[::-1]

    assert to_tensors(array, FLOATS).tolist() == [2, 1j]


@pytest.mark.parametrize(
    "value",
    [
        np.array(["2020-01-01"], "M8[D]"),
        np.array([1, "a"], object),
        np.zeros(2, dtype=[("x", "f4")]),
        [2**64],
        ["text"],
        [[1.0], [1.0, 2.0]],
        {1.0},
    ],
    ids=repr,
)
def test_what_holds_no_numbers_stays(value: object) -> None:
    """Text, dates, objects and rows of several lengths are nobody's tensor."""
    assert to_tensors(value, FLOATS) is value
    assert as_target(value, CPU) is value


@pytest.mark.parametrize("value", [np.array([2**63], np.uint64), [2**63]], ids=["array", "list"])
def test_integers_beyond_int64_are_refused(value: object) -> None:
    """Where integers are kept, a larger one would change its sign."""
    with pytest.raises(InvalidInput, match="integers up to 9223372036854775808 came"):
        to_tensors(value, LOOK_UPS)
    with pytest.raises(InvalidInput, match="int64 ends at 9223372036854775807"):
        as_target(value, CPU)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.arange(3.0)[::-1], torch.tensor([2.0, 1.0, 0.0])),
        (np.arange(3, dtype=">i2")[::-1], torch.tensor([2, 1, 0])),
        (np.ones(2, np.longdouble), torch.ones(2)),
        ([True, False], torch.tensor([1, 0])),
        ([torch.ones(1), torch.ones(1)], torch.ones(2, 1)),
    ],
)
def test_targets_are_int64_or_the_default_float(value: object, expected: torch.Tensor) -> None:
    """Integers and booleans are classes; floats are values."""
    target = as_target(value, CPU)

    assert torch.equal(target, expected)
    assert target.dtype == expected.dtype


@pytest.mark.parametrize(
    ("tensor", "dtype"),
    [
        (torch.tensor([1 + 2j]).conj(), "complex64"),
        (torch.tensor([1 + 2j]).conj().imag, "float32"),
        (torch.ones(2, dtype=torch.bfloat16), "float32"),
        (torch.ones(2).to(torch.float8_e4m3fn), "float32"),
        (torch.ones(2, dtype=torch.float16), "float16"),
        (torch.ones(2, requires_grad=True), "float32"),
    ],
)
def test_every_dense_tensor_has_an_array(tensor: torch.Tensor, dtype: str) -> None:
    """Views are resolved, and floats that NumPy does not know become float32."""
    array = mirrored(tensor, "array")

    assert array.dtype == dtype
    assert array.tolist() == mirrored(tensor, "list") == tensor.tolist()


@pytest.mark.parametrize("kind", ["array", "list"])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.strided])
def test_tensors_without_a_counterpart_stay(kind, layout) -> None:
    """A sparse tensor is no array, and neither is one without data."""
    dense = torch.ones(2, 2)
    tensor = dense.to_sparse() if layout is torch.sparse_coo else dense.to("meta")

    assert mirrored(tensor, kind) is tensor


def test_a_list_that_holds_itself_ends() -> None:
    """Neither a cycle nor thousands of levels stop a walk."""
    cycle: list[object] = [torch.ones(1, requires_grad=True)]
    cycle += [cycle, cycle]
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]

    assert wants_gradient(cycle)
    assert to_tensors(cycle, FLOATS) is not None
    assert not detached(cycle)[0].requires_grad
    assert mirrored(deep, "array") is deep


def test_nested_lists_of_tensors_keep_their_history() -> None:
    """Lists of tensors are containers, however deep, and never go through NumPy."""
    weight = torch.ones((), requires_grad=True)
    rows = [[weight * 1, weight * 2]]

    assert to_tensors(rows, FLOATS) is rows
    assert to_tensors([1.0, weight], FLOATS)[1] is weight


@pytest.mark.parametrize("kind", ["frame", "series", "polars", "sparse"])
def test_frames_and_sparse_matrices_count_as_arrays(kind: str) -> None:
    """A graph that is given one answers as scikit-learn does."""
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "x"])
    made = {
        "frame": frame,
        "series": frame["a"],
        "polars": pl.DataFrame({"a": [1.0]}),
        "sparse": csr_matrix([[1.0]]),
    }

    assert kind_of(made[kind]) == "array"

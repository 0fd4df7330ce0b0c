"""Rows of data of any kind, and the words for rows that are not there."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch

from soma import Inputs
from soma.errors import InvalidInput
from soma.training._prefix import Prefix
from soma.training._rows import take

X = torch.arange(5.0)
PREFIX = Prefix({"root": X, "list": X.tolist()}, made_for=1)
MASK = [True, False, False, True, False]
Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (slice(1, 3), [1, 2]),
        (slice(None, None, -2), [4, 2, 0]),
        ([0, -1], [0, 4]),
        (np.array([1, 2], np.uint8), [1, 2]),
        (torch.tensor([-5, 3], dtype=torch.int32), [0, 3]),
        ([], []),
        (MASK, [0, 3]),
        (np.array(MASK), [0, 3]),
        (torch.tensor(MASK), [0, 3]),
    ],
    ids=repr,
)
def test_rows_of_a_prefix_are_what_numpy_gives(rows: object, expected: list[int]) -> None:
    """Slices, positions and masks mean what they mean for arrays."""
    some = PREFIX[rows]

    assert some.values["root"].tolist() == expected
    assert some.values["list"] == expected


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([True] * 4, "the mask has 4 entries and there are 5 rows"),
        (torch.ones(6) > 0, "the mask has 6 entries and there are 5 rows"),
        ([0, 5], "position 5 is outside the 5 rows; give positions from -5 to 4"),
        (np.array([-6]), "position -6 is outside the 5 rows"),
        ([0.5], "list of 1 came for the rows"),
        (torch.zeros(1, 1, dtype=torch.int64), r"shape \(1, 1\) came for the rows"),
        ([[1], [1, 2]], "list of 2 came for the rows"),
        (0, r"asked for 0; .* `g.module\(\).tensors\(prefix\)` makes"),
        ("root", "asked for 'root'; .* Its `values` are by node"),
    ],
)
def test_rows_that_are_not_there_are_told(rows: object, words: str) -> None:
    """The error names what came and how many rows there are."""
    with pytest.raises(InvalidInput, match=words):
        PREFIX[rows]


def test_parts_of_a_tuple_have_rows() -> None:
    """A filter that gives a pair can stand before the first module."""
    some = Prefix({"root": (X, X.numpy())}, made_for=1)[[1, -1]]

    assert [part.tolist() for part in some.values["root"]] == [[1, 4], [1, 4]]


@pytest.mark.parametrize("index", [slice(0, 2), torch.tensor([0, 1])], ids=["slice", "positions"])
@pytest.mark.parametrize("kind", [torch.Tensor.clone, torch.Tensor.numpy], ids=["tensor", "array"])
def test_rows_are_copies(kind, index) -> None:
    """A module that works in place writes to its batch, not to the data."""
    whole = kind(X.clone())
    rows = take(whole, index)
    rows += 100

    assert whole.tolist() == X.tolist()


@pytest.mark.parametrize(
    "value",
    [OrderedDict(a=X), Pair(X, X.numpy()), Inputs(a=X), {"a": (X, X)}],
    ids=lambda value: type(value).__name__,
)
def test_rows_come_in_the_same_container(value: object) -> None:
    """Mappings and tuples keep their type."""
    assert type(take(value, slice(0, 2))) is type(value)


@pytest.mark.parametrize("value", [torch.tensor(1.0), np.array(1.0), 1.0, "text"], ids=repr)
def test_a_single_value_has_no_rows(value: object) -> None:
    """Numbers, alone or in an array without axes, are refused with a word on what has rows."""
    with pytest.raises(InvalidInput, match=r"which has none\. Give tensors, arrays"):
        take(value, slice(0, 1))

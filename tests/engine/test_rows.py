"""What `fit` refuses: no rows, and targets that are not as many as the rows."""

import numpy as np
import pytest
import torch

from soma import Graph, Inputs
from soma.engine import row_count
from soma.errors import InvalidInput
from tests.engine.filters import Keeps, Same


def fit(x: object, y: object = None) -> None:
    """Fit a graph that takes anything."""
    Graph.somatize(Keeps() | Same()).fit(x, y)


@pytest.mark.parametrize(
    "x",
    [[], np.zeros((0, 3)), torch.zeros(0), {"a": []}, Inputs(keeps=[], same=[1])],
    ids=["list", "array", "tensor", "dict", "inputs"],
)
def test_no_rows_are_refused(x: object) -> None:
    """There is nothing to learn from, and the error says what came."""
    with pytest.raises(InvalidInput, match="no rows") as caught:
        fit(x)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        ([1, 2, 3], [1, 2], "x has 3 rows and y has 2: list of 3 against list of 2"),
        (np.zeros((4, 2)), torch.zeros(3), "x has 4 rows and y has 3"),
        ({"a": [1], "b": [2]}, [1, 2], "x has 1 rows and y has 2"),
        ([1, 2], {"keeps": [1, 2], "same": [1]}, "y['same'] has 1"),
        ([1, 2], [], "x has 2 rows and y has 0"),
    ],
)
def test_lengths_that_differ_are_refused(x: object, y: object, text: str) -> None:
    """Both numbers are told, before anything is fitted."""
    with pytest.raises(InvalidInput) as caught:
        fit(x, y)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (3, [1, 2]),
        ("abc", [1, 2]),
        ((1, 2, 3), [1, 2]),
        (None, None),
        (np.float64(1.0), [1, 2]),
        (np.zeros(()), [1]),
        (torch.zeros(2, 0), [1, 2]),
        ({}, [1]),
        ({"a": [1], "b": [1, 2]}, [1, 2, 3]),
        ({1, 2}, [1]),
    ],
)
def test_what_has_no_rows_to_count_is_let_through(x: object, y: object) -> None:
    """Only lists, arrays and tensors say how many rows they have."""
    fit(x, y)


class Lazy:
    """An array that does not know its length yet."""

    def __init__(self, rows: object) -> None:
        self.shape = (rows, 3)


@pytest.mark.parametrize("rows", [float("nan"), None, "?", object()])
def test_a_length_that_is_not_known_yet_is_not_counted(rows: object) -> None:
    """Lazy arrays are fitted on as they are."""
    assert row_count(Lazy(rows)) is None
    fit(Lazy(rows), [1, 2])


@pytest.mark.parametrize("x", [[], np.zeros((0, 2)), torch.zeros(0, 2)])
def test_forward_takes_no_rows(x: object) -> None:
    """An empty batch is no reason to stop in inference."""
    assert len(Graph.somatize(Same()).forward(x)) == 0

"""Rows are cut out of data of any kind, and joined in the same kind."""

import subprocess
import sys
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch

from soma import Inputs
from soma.engine._rows import chunks, join
from soma.errors import InvalidInput

Pair = namedtuple("Pair", "left right")


def same(one: object, other: object) -> bool:
    """Compare values and their types."""
    return type(one) is type(other) and str(one) == str(other)


@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3, 4, 5],
        np.arange(10).reshape(5, 2),
        np.array(["a", "bb", "c", "d", "eee"]),
        np.ma.masked_greater(np.arange(5), 2),
        torch.arange(10).reshape(5, 2),
        {"a": [1, 2], "b": torch.zeros(2, 3)},
        OrderedDict(a=[1, 2]),
        Inputs({"a.b": [1, 2, 3], "c": np.zeros(3)}),
        [],
        np.zeros((0, 3), dtype=np.int8),
        torch.zeros(0, 3),
    ],
    ids=[
        "list",
        "array",
        "texts",
        "masked",
        "tensor",
        "dict",
        "ordered",
        "inputs",
        "no list",
        "no array",
        "no tensor",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_joined_chunks_are_the_data(x: object, size: int) -> None:
    """Whatever the size of the chunks."""
    assert same(join(list(chunks(x, size))), x)


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
def test_pandas_frames_keep_their_index(kind: str, size: int) -> None:
    """And the types of their columns."""
    pandas = pytest.importorskip("pandas")
    data = {"DataFrame": {"a": [1, 2, 3], "b": list("xyz")}, "Series": [1, 2, 3]}[kind]
    frame = getattr(pandas, kind)(data, index=[5, 3, 4])

    assert join(list(chunks(frame, size))).equals(frame)


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
def test_polars_frames(kind: str, size: int) -> None:
    """They have no index."""
    polars = pytest.importorskip("polars")
    frame = polars.Series([1, 2, 3])
    frame = frame.to_frame("a") if kind == "DataFrame" else frame

    assert join(list(chunks(frame, size))).equals(frame)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_arrow_tables(size: int) -> None:
    """By narwhals, as all frames that are neither of pandas nor of Polars."""
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": [1, 2, None], "b": ["x", "y", "z"]})

    assert join(list(chunks(table, size))).equals(table)


@pytest.mark.process
def test_a_missing_library_names_its_extra() -> None:
    """Where narwhals is not installed, the error ends with the command that installs it."""
    code = (
        "import sys; sys.modules['narwhals'] = None\n"
        "import pyarrow, soma.engine._rows as rows\n"
        "rows.join([pyarrow.table({'a': [1]})] * 2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr.endswith("pip install 'soma-graph[frames]'\n")


def test_tuples_are_joined_part_by_part() -> None:
    """Named ones as such."""
    assert join([([1], [2]), ([3], [4])]) == ([1, 3], [2, 4])
    assert same(join([Pair([1], [2]), Pair([3], [4])]), Pair([1, 3], [2, 4]))


def test_empty_chunks_have_no_say_in_the_type() -> None:
    """An empty array is one of floats by default."""
    joined = join([np.zeros(0), np.array([1, 2]), []])

    assert joined.dtype.kind == "i"
    assert joined.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([1.0, 2.0], "float came for each chunk, which has no rows to join"),
        ([np.float64(1), np.float64(2)], "float64 of float64"),
        ([torch.tensor(1), torch.tensor(2)], "Tensor of int64"),
        (["a", "b"], "str of 1 came"),
        ([[1], np.ones(1)], "list of 1 came for one chunk and ndarray of float64"),
        ([{"a": [1]}, {"b": [1]}], "give the same parts for each"),
        ([([1],), ([1], [2])], "give the same parts for each"),
    ],
)
def test_what_cannot_be_joined_is_refused(parts: list[object], text: str) -> None:
    """The error says what came."""
    with pytest.raises(InvalidInput, match=text):
        join(parts)

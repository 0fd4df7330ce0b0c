"""Data cut into batches, joined again, and told apart from loaders."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from soma import Inputs
from soma.errors import InvalidInput
from soma.training._batches import Loaded, Rows, gathered, is_loader, parts_of
from soma.training._prefix import Prefix
from soma.training._rows import take

X = torch.arange(10.0)
PREFIX = Prefix({"root": X}, made_for=1)


def rows(batch_size: int = 4) -> Rows:
    return Rows(PREFIX, {"leaf": X * 2}, batch_size)


def test_in_order_gives_every_row_once() -> None:
    """The last batch is smaller; none is dropped."""
    batches = list(rows().in_order())

    assert [batch.rows for batch in batches] == [4, 4, 2]
    assert torch.equal(torch.cat([batch.x.values["root"] for batch in batches]), X)
    assert rows().steps == 3


def test_shuffled_is_one_randperm() -> None:
    """The order is what `torch.randperm` draws from the same generator."""
    torch.manual_seed(0)
    order = torch.randperm(10)
    torch.manual_seed(0)
    batches = list(rows().shuffled(None))

    assert torch.equal(torch.cat([batch.x.values["root"] for batch in batches]), X[order])
    assert torch.equal(torch.cat([batch.y["leaf"] for batch in batches]), X[order] * 2)


def test_leaves_that_share_targets_share_their_rows() -> None:
    """Rows of one target are taken once, whoever reads them."""
    batch = next(Rows(PREFIX, {"a": X, "b": X}, 4).in_order())

    assert batch.y["a"] is batch.y["b"]


def test_targets_of_another_length_are_refused() -> None:
    """A prefix that drops rows does not meet its targets."""
    with pytest.raises(InvalidInput, match=r"shape \(7,\), and there are 10 rows"):
        Rows(PREFIX, {"leaf": X[:7]}, 4)


@pytest.mark.parametrize(
    "value",
    [X, X.numpy(), X.tolist(), {"a": X}, Inputs(a=X), (X, X), "text", 3.0],
    ids=lambda value: type(value).__name__,
)
def test_data_is_no_loader(value: object) -> None:
    """Tensors, arrays, lists, mappings and tuples are the data itself."""
    assert not is_loader(value)


def test_a_loader_is_whatever_gives_batches_anew() -> None:
    """A DataLoader is one, and so is a class with `__iter__`."""

    class Batches:
        def __iter__(self):
            return iter([X])

    assert is_loader(DataLoader(TensorDataset(X)))
    assert is_loader(Batches())


@pytest.mark.parametrize(
    ("batch", "parts"),
    [
        ((1, 2), (1, 2)),
        (["x", "y"], ("x", "y")),
        (["x"], ("x", None)),
        ([0.5, 1.5], ([0.5, 1.5], None)),
        ({"a": 1}, ({"a": 1}, None)),
    ],
)
def test_a_batch_is_a_pair_or_x_alone(batch: object, parts: tuple[object, object]) -> None:
    """Pairs are `(x, y)`; numbers in a list are x."""
    assert parts_of(batch) == parts


@pytest.mark.parametrize(
    "kind",
    [
        lambda x: x,
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: {"a": x, "b": x.tolist()},
        lambda x: Inputs(a=x, b=x.numpy()),
        lambda x: (x, x),
    ],
    ids=["tensor", "array", "list", "mapping", "inputs", "tuple"],
)
def test_what_is_gathered_is_what_was_cut(kind) -> None:
    """Joining the batches of any kind of data gives the data."""
    whole = kind(X)
    parts = [(take(whole, slice(start, start + 4)), None) for start in (0, 4, 8)]

    class Batches:
        def __iter__(self):
            return iter(parts)

    x, y = gathered(Batches())
    assert y is None
    assert type(x) is type(whole)
    assert repr(x) == repr(whole)


def test_batches_that_cannot_be_joined_are_told() -> None:
    """A filter that learns from all of it needs data that can be put together."""

    class Batches:
        def __iter__(self):
            return iter([(object(), None)] * 2)

    with pytest.raises(InvalidInput, match="learns from all the data at once"):
        gathered(Batches())


def test_a_loaded_batch_counts_its_rows() -> None:
    """Rows are told from x, else from y."""
    loaded = Loaded([], (X, None), lambda y: {})

    assert loaded.first().rows == 10
    assert Loaded([], ("text", np.zeros(3)), lambda y: {}).first().rows == 3

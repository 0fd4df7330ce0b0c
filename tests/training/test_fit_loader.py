"""`g.fit` with a DataLoader, which makes the batches itself."""

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from soma import Graph, Inputs
from soma.errors import InvalidInput, UntrainedWarning
from tests.training.filters import Concatenate, Dense, Standardize, data

X, Y = data(rows=50)


def loader(*tensors: torch.Tensor, **options) -> DataLoader:
    return DataLoader(TensorDataset(*(tensors or (X, Y))), **{"batch_size": 16, **options})


class Endless(IterableDataset):
    """A stream of rows whose length nobody knows."""

    def __iter__(self):
        yield from zip(X, Y, strict=True)


def test_a_filter_that_learns_sees_all_batches_at_once() -> None:
    """The scaler is fitted on the joined data, then each batch runs through the whole graph."""
    g = Graph.somatize(Standardize() >> Dense(3)).fit(loader(shuffle=True), epochs=1)

    assert torch.allclose(g.get_node_state("standardize")["mean"], X.mean(0), atol=1e-6)
    assert torch.allclose(g.get_node_state("standardize")["std"], X.std(0), atol=1e-6)


def test_a_stream_of_unknown_length_trains() -> None:
    """An iterable dataset needs no `len`."""
    g = Graph.somatize(Dense(3)).fit(DataLoader(Endless(), batch_size=16), epochs=2)

    assert len(g.history) == 2


def test_losses_are_means_over_rows_not_batches() -> None:
    """A small last batch counts as its rows do."""
    whole = Graph.somatize(Dense(3)).fit(X, Y, epochs=1, seed=0, batch_size=50)
    still = torch.optim.SGD(whole.parameters(), lr=0.0)
    whole.fit(loader(), epochs=1, optimizer=still)
    by_batch = whole.history[0].loss
    whole.fit(X, Y, epochs=1, batch_size=50)

    assert by_batch == pytest.approx(whole.history[0].loss, rel=1e-6)


def test_a_loader_of_x_alone_has_no_targets() -> None:
    """Without targets in the batches modules stay untrained, with a warning."""
    with pytest.warns(UntrainedWarning):
        Graph.somatize(Dense(3)).fit(loader(X), epochs=1)


def test_a_loader_may_give_inputs_and_targets_by_leaf() -> None:
    """Each batch may be `(Inputs, {leaf: y})`."""
    g = Graph()
    g.node("a", Dense(4))
    g.node("b", Dense(4))
    g.node("join", Concatenate(3))
    g.connect("a", "join").connect("b", "join")
    together = [(Inputs(a=X[:25], b=X[:25]), {"join": Y[:25]})]

    class Batches:
        def __iter__(self):
            return iter(together)

    assert len(g.fit(Batches(), epochs=2).history) == 2


def test_targets_go_into_the_loader() -> None:
    """A y beside a loader is refused."""
    with pytest.raises(InvalidInput, match=r"gives the targets with each batch.*Leave y out"):
        Graph.somatize(Dense(3)).fit(loader(), Y, epochs=1)


def test_a_dataset_is_not_a_loader() -> None:
    """A dataset is refused with the line that makes a loader of it."""
    with pytest.raises(InvalidInput, match=r"DataLoader\(dataset, batch_size=64, shuffle=True\)"):
        Graph.somatize(Dense(3)).fit(TensorDataset(X, Y), epochs=1)


def test_a_loader_without_batches_is_told() -> None:
    """An empty loader is one clear error."""
    with pytest.raises(InvalidInput, match="gave no batches"):
        Graph.somatize(Dense(3)).fit(loader(batch_size=64, drop_last=True), epochs=1)


def test_batches_of_three_parts_are_told() -> None:
    """What is neither `(x, y)` nor x is refused."""
    with pytest.raises(InvalidInput, match="`\\(x, y\\)` or x alone is wanted"):
        Graph.somatize(Dense(3)).fit(loader(X, Y, Y), epochs=1)


def test_looking_at_the_first_batch_leaves_the_loaders_generator_alone() -> None:
    """A loader with its own generator draws the same orders with and without `epochs=0`."""
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    Graph.somatize(Standardize() >> Dense(3)).fit(
        loader(shuffle=True, generator=generator), epochs=0
    )

    assert torch.equal(generator.get_state(), before)

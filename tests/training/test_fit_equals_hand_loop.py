"""`g.fit` against the same training written by hand in torch: equal to the last bit."""

from functools import partial

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from soma import Graph
from tests.training.filters import Dense, Rounded, Wrap, data

X, Y = data(rows=70)
SGD = partial(torch.optim.SGD, lr=0.1, momentum=0.9)


def noisy_net(shape: tuple[int, ...] = (6,)) -> nn.Module:
    return nn.Sequential(
        nn.Linear(*shape, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 3)
    )


def by_hand(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    x: Tensor,
    y: Tensor,
    *,
    epochs: int = 3,
    batch_size: int = 16,
    loss=F.mse_loss,
    generator: torch.Generator | None = None,
    clip: float | None = None,
) -> list[float]:
    model.train()
    seen = []
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator)
        total = 0.0
        for start in range(0, len(x), batch_size):
            rows = order[start : start + batch_size]
            optimizer.zero_grad()
            value = loss(model(x[rows]), y[rows])
            value.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            total += value.item() * len(rows)
        seen.append(total / len(x))
    model.eval()
    return seen


def assert_same_weights(g: Graph, model: nn.Module) -> None:
    mine, theirs = list(g.parameters()), list(model.parameters())
    assert len(mine) == len(theirs)
    assert all(torch.equal(one, other) for one, other in zip(mine, theirs, strict=True))


def test_a_factory_trains_as_the_loop_by_hand() -> None:
    """Weights, losses and predictions are those of the hand-written loop."""
    torch.manual_seed(3)
    model = noisy_net()
    losses = by_hand(model, SGD(model.parameters()), X, Y)

    torch.manual_seed(3)
    g = Graph.somatize(Wrap(noisy_net)).fit(X, Y, epochs=3, batch_size=16, optimizer=SGD)

    assert_same_weights(g, model)
    assert [record.loss for record in g.history] == pytest.approx(losses, rel=1e-12)
    with torch.no_grad():
        assert torch.equal(g.forward(X), model(X))


def test_an_optimizer_made_before_trains_the_same() -> None:
    """An instance over `g.parameters()` gives the weights of the loop by hand."""
    torch.manual_seed(3)
    model = noisy_net()
    by_hand(model, SGD(model.parameters()), X, Y)

    torch.manual_seed(3)
    g = Graph.somatize(Wrap(noisy_net)).fit(X, epochs=0)
    g.fit(X, Y, epochs=3, batch_size=16, optimizer=SGD(g.parameters()))

    assert_same_weights(g, model)


def test_a_seed_fixes_building_shuffling_and_dropout() -> None:
    """With a seed the whole fit is the loop by hand under that seed."""
    generator = torch.Generator().manual_seed(7)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = noisy_net()
        by_hand(model, SGD(model.parameters()), X, Y, generator=generator)

    g = Graph.somatize(Wrap(noisy_net))
    g.fit(X, Y, epochs=3, batch_size=16, optimizer=SGD, seed=7)

    assert_same_weights(g, model)


def test_validation_changes_nothing_of_it() -> None:
    """A fit with validation ends at the same weights, bit for bit."""
    torch.manual_seed(3)
    model = noisy_net()
    by_hand(model, SGD(model.parameters()), X, Y)

    torch.manual_seed(3)
    g = Graph.somatize(Wrap(noisy_net))
    g.fit(X, Y, epochs=3, batch_size=16, optimizer=SGD, validation=data(rows=9, seed=1))

    assert_same_weights(g, model)


def test_clipping_is_torchs() -> None:
    """`clip` is `clip_grad_norm_` between backward and step."""
    torch.manual_seed(3)
    model = noisy_net()
    by_hand(model, SGD(model.parameters()), X, Y, clip=0.2)

    torch.manual_seed(3)
    g = Graph.somatize(Wrap(noisy_net))
    g.fit(X, Y, epochs=3, batch_size=16, optimizer=SGD, clip=0.2)

    assert_same_weights(g, model)


def test_an_opaque_prefix_runs_once_and_changes_nothing() -> None:
    """Rows of a prefix that ran on all the data are what the loop by hand trains on."""
    torch.manual_seed(3)
    model = noisy_net()
    by_hand(model, SGD(model.parameters()), torch.round(X * 4) / 4, Y)

    torch.manual_seed(3)
    g = Graph.somatize(Rounded() >> Wrap(noisy_net))
    g.fit(X, Y, epochs=3, batch_size=16, optimizer=SGD)

    assert_same_weights(g, model)


def test_a_shuffling_loader_trains_the_same() -> None:
    """Epochs over a DataLoader draw what a `for` over it draws, and nothing more."""

    def loader() -> DataLoader[tuple[Tensor, ...]]:
        return DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)

    torch.manual_seed(3)
    model = noisy_net().train()
    optimizer = SGD(model.parameters())
    for _ in range(3):
        for x, y in loader():
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()

    torch.manual_seed(3)
    g = Graph.somatize(Wrap(noisy_net)).fit(loader(), epochs=3, optimizer=SGD)

    assert_same_weights(g, model)


def test_a_chain_of_nodes_learns_digits_as_one_module_does() -> None:
    """Cross-entropy on the digits of scikit-learn gives the weights of one `nn.Sequential`."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    adam = torch.optim.Adam
    by_hand(model, adam(model.parameters()), x, y, epochs=2, loss=F.cross_entropy, batch_size=64)

    torch.manual_seed(0)
    g = Graph.somatize(Dense(32, nn.ReLU) >> Dense(10))
    g.fit(x, y, epochs=2, optimizer=adam)

    assert_same_weights(g, model)

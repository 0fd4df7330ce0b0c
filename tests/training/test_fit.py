"""What `g.fit` does with filters that learn and modules, in which order, and how it ends."""

import random
from collections import Counter
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from torch.nn import functional as F

from soma import DifferentiableFilter, Filter, Graph, Inputs
from soma.errors import InvalidInput, ModeError, SomaWarning, UntrainedWarning
from tests.training.filters import Concatenate, Dense, Rounded, Standardize, Wrap, data

X, Y = data()
SGD = partial(torch.optim.SGD, lr=0.1)


class Counting(Filter):
    """A scaler that counts its calls."""

    calls: ClassVar[Counter[str]] = Counter()

    def fit(self, x, y=None):
        self.calls["fit"] += 1
        return x.mean(0)

    def forward(self, x, state):
        self.calls["forward"] += 1
        return x - state


class Tree(Filter):
    """A tree over what comes before it, answering with class probabilities."""

    def fit(self, x, y=None):
        return DecisionTreeClassifier(max_depth=3, random_state=0).fit(np.asarray(x), y)

    def forward(self, x, state):
        return torch.tensor(state.predict_proba(np.asarray(x)), dtype=torch.float32)


class Reconstructing(DifferentiableFilter):
    """An autoencoder: its loss needs no targets."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], input_shape[-1], bias=False)

    def forward(self, x, state=None):
        return self._module(x), {"input": x}

    def compute_loss(self, out, y, aux):
        return F.mse_loss(out, aux["input"])


def weights(g: Graph) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in g.parameters()]


def test_a_graph_of_scaler_and_modules_learns_wine() -> None:
    """One call fits the scaler, trains the modules and leaves a graph that predicts."""
    x, y = load_wine(return_X_y=True)
    g = Graph.somatize(Standardize() >> Dense(16, nn.ReLU) >> Dense(3))

    g.fit(torch.tensor(x, dtype=torch.float32), y, epochs=40, batch_size=32, seed=0)

    predicted = g.forward(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy()
    assert (predicted == y).mean() > 0.95


def test_arrays_and_lists_train_like_tensors() -> None:
    """The kind of the data makes no difference to the weights."""
    x, y = load_iris(return_X_y=True)
    x = x.astype(np.float32)
    trained = [
        weights(Graph.somatize(Dense(3)).fit(*given, epochs=2, seed=0))
        for given in [(x, y), (x.tolist(), y.tolist()), (torch.tensor(x), torch.tensor(y))]
    ]

    assert all(torch.equal(one[0], trained[0][0]) for one in trained)


def test_a_plain_filter_learns_once_and_runs_once_before_the_modules() -> None:
    """The opaque part does not run for every step."""
    Counting.calls.clear()
    Graph.somatize(Counting() >> Dense(3)).fit(X, Y, epochs=5, batch_size=8)

    # one fit; forwards: in the fit, and for the prefix, whose first rows build the module
    assert Counting.calls == {"fit": 1, "forward": 2}


def test_a_second_fit_learns_plain_filters_anew() -> None:
    """The scaler's state is that of the last data."""
    g = Graph.somatize(Standardize() >> Dense(3)).fit(X, Y, epochs=1)
    g.fit(X + 5, Y, epochs=1)

    assert torch.equal(g.get_node_state("standardize")["mean"], (X + 5).mean(0))


def test_a_second_fit_goes_on_from_the_weights_of_the_first() -> None:
    """The loss of the second fit begins where the first one ended."""
    g = Graph.somatize(Dense(3)).fit(X, Y, epochs=30, optimizer=torch.optim.SGD, seed=0)
    first, optimizer = g.history, g.optimizer()
    g.fit(X, Y, epochs=1, seed=0)

    assert g.history[0].loss < first[0].loss
    assert g.optimizer() is optimizer


def test_a_filter_below_a_module_learns_from_its_output() -> None:
    """A tree after a module is fitted on what the new module gives."""
    x, y = load_iris(return_X_y=True)
    g = Graph.somatize(Dense(4) >> Tree() >> Dense(3))
    with pytest.warns(UserWarning, match="no loss reaches `dense`"):
        g.fit(torch.tensor(x, dtype=torch.float32), y, epochs=1, seed=0)

    assert g.get_node_state("tree").n_features_in_ == 4


def test_no_epochs_prepare_for_a_loop_of_ones_own() -> None:
    """`epochs=0` fits and builds, leaves eval on, and nothing frozen."""
    g = Graph.somatize(Standardize() >> Dense(3)).fit(X, Y, epochs=0)

    assert not g.training
    assert g.get_node_state("dense") is None
    assert g.forward(X).shape == Y.shape
    assert len(g.history) == 0


def test_without_targets_one_warning_says_that_modules_are_untrained() -> None:
    """A fit without targets builds and freezes, and tells how to train."""
    g = Graph.somatize(Dense(4) >> Dense(3))
    with pytest.warns(
        UntrainedWarning, match=r"`dense` and `dense_2` stay untrained.*g\.fit"
    ) as told:
        g.fit(X)

    assert len(told) == 1
    assert told[0].filename == __file__
    assert g.get_node_state("dense") is not None


def test_a_leaf_that_computes_its_loss_trains_without_targets() -> None:
    """An autoencoder needs no y."""
    g = Graph.somatize(Reconstructing()).fit(X, epochs=60, seed=0, optimizer=SGD)

    assert g.history.losses == {"reconstructing": "compute_loss of Reconstructing"}
    assert g.history[-1].loss < 0.8 * g.history[0].loss


def test_targets_by_leaf_train_each_leaf_on_its_own() -> None:
    """Losses of several leaves are added, and told apart in the history."""
    x, y = load_iris(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32)
    g = Graph()
    g.node("trunk", Dense(8, nn.ReLU))
    g.node("species", Dense(3))
    g.node("width", Dense(1))
    g.connect("trunk", "species").connect("trunk", "width")

    g.fit(x, {"species": y, "width": x[:, 3]}, epochs=2)

    assert g.history.losses == {
        "species": "cross-entropy (integer targets)",
        "width": "mean squared error (float targets)",
    }
    record = g.history[-1]
    assert record.loss == pytest.approx(record.losses["species"] + record.losses["width"])


def test_each_root_gets_its_part_of_the_rows() -> None:
    """`Inputs` are shuffled and cut together."""
    g = Graph()
    g.node("a", Dense(4))
    g.node("b", Dense(4))
    g.node("join", Concatenate(1))
    g.connect("a", "join").connect("b", "join")
    x = torch.arange(40.0).reshape(40, 1)

    g.fit(Inputs(a=x / 40, b=-x / 40), x / 40, epochs=30, batch_size=8, seed=0,
          optimizer=lambda weights: torch.optim.Adam(weights, lr=0.05))  # fmt: skip

    assert g.history[-1].loss < 1e-2


def test_a_seed_leaves_the_generators_as_they_were() -> None:
    """Seeding one fit does not seed what comes after it."""
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    Graph.somatize(Dense(3)).fit(X, Y, epochs=1, seed=5)
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()

    assert before[:2] == after[:2]
    assert torch.equal(before[2], after[2])


@pytest.mark.parametrize("seed", [None, 0])
def test_an_executor_may_run_what_is_not_trained(seed: int | None) -> None:
    """Threads fit the plain filters; modules are built and trained in order."""
    branches = (Standardize() >> Rounded() | Counting()) >> Concatenate(4) >> Dense(3)
    g = Graph.somatize(branches, executor="threads").fit(X, Y, epochs=1, seed=seed)

    assert g.forward(X).shape == Y.shape


class Interrupting(nn.Linear):
    """A layer during whose seventh forward somebody presses Ctrl-C."""

    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls == 7:
            raise KeyboardInterrupt
        return super().forward(x)


def test_ctrl_c_leaves_a_graph_that_works() -> None:
    """An interrupted fit is in eval, predicts, keeps what it did and can go on."""
    g = Graph.somatize(Wrap(lambda shape: Interrupting(*shape, 3)))
    with pytest.raises(KeyboardInterrupt):
        g.fit(X, Y, epochs=9, batch_size=32)

    assert not g.training
    assert g.optimizer() is not None
    assert [record.epoch for record in g.history] == [1, 2]
    assert g.forward(X).shape == Y.shape
    assert len(g.fit(X, Y, epochs=2).history) == 2


def test_a_loss_that_is_not_finite_stops_nothing() -> None:
    """NaN is passed on and shown, and the fit ends as ever."""
    g = Graph.somatize(Dense(3))
    with pytest.warns(SomaWarning, match=r"the loss of `dense` is (nan|inf) since epoch \d"):
        g.fit(X, Y, epochs=3, optimizer=lambda weights: torch.optim.SGD(weights, lr=1e30))

    assert not np.isfinite(g.history[-1].loss)
    assert "nan" in str(g.history) or "inf" in str(g.history)


def test_a_step_that_fails_says_where_it_was() -> None:
    """BatchNorm with one row left over is told with the batch size that avoids it."""
    g = Graph.somatize(Wrap(lambda shape: nn.Sequential(nn.Linear(*shape, 3), nn.BatchNorm1d(3))))
    with pytest.raises(ValueError, match="more than 1 value per channel") as raised:
        g.fit(X[:33], Y[:33], epochs=1, batch_size=32)

    assert "what is left of 33 rows in batches of 32" in raised.value.__notes__[-1]
    assert "`batch_size=33` leaves no single one" in raised.value.__notes__[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": Y[:60]}, "x has 64 rows and y has 60"),
        ({"x": X[:0], "y": Y[:0]}, "has no rows"),
        ({"y": {"dens": Y}}, r"`y` names 'dens', which is no leaf.*Did you mean `dense`\?"),
        ({"loss": {"dens": F.mse_loss}}, r"`loss` names 'dens'.*Did you mean `dense`\?"),
        ({"y": 3.0}, "One target for each row is wanted"),
        ({"x": iter([(X, Y)]), "y": None}, "only once"),
        ({"epochs": -1}, "`epochs` is -1"),
        ({"batch_size": 0}, "`batch_size` is 0"),
        ({"clip": 0.0}, "`clip` is 0.0"),
        ({"clip": "1.0"}, "`clip` is '1.0'"),
        ({"seed": 2**64}, "`seed` is 18446744073709551616; a whole number below"),
        ({"y": torch.arange(64) % 2 - 1}, r"go from -1 to 0.*Number the classes from 0\.$"),
        ({"validation": X}, "a pair `\\(x, y\\)` or a DataLoader"),
        ({"validation": (X, Y[:3])}, "x has 64 rows and y has 3"),
    ],
)
def test_what_does_not_go_together_is_told_before_training(change: dict, message: str) -> None:
    """Each mistake in the call raises one clear error."""
    given = {"x": X, "y": Y, "epochs": 1} | change
    with pytest.raises(InvalidInput, match=message):
        Graph.somatize(Dense(3)).fit(given.pop("x"), given.pop("y"), **given)


def test_a_single_row_that_cannot_be_normalised_ends_in_the_error_of_torch() -> None:
    """There is no better batch size to suggest, and none is looked for."""
    g = Graph.somatize(Wrap(lambda s: nn.Sequential(nn.Linear(s[-1], 3), nn.BatchNorm1d(3))))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        g.fit(X[:1], Y[:1], epochs=1, progress=False)


def test_a_node_added_between_two_fits_is_trained() -> None:
    """The optimizer that the first fit chose is made anew for the weights there are."""
    g = Graph.somatize(Dense(3))
    g.fit(X, Y, epochs=1, progress=False)
    g.node("late", Dense(3))
    g.connect("dense", "late")
    g.materialize(X)
    before = g.filter("late")._live.weight.clone()
    g.fit(X, Y, epochs=1, progress=False)
    assert not torch.equal(g.filter("late")._live.weight, before)


def test_weights_in_no_optimizer_are_named() -> None:
    """A user's own optimizer is kept, with a word on what it leaves out."""
    g = Graph.somatize(Dense(4) >> Dense(3))
    g.materialize(X)
    g.set_optimizer(torch.optim.SGD(g.filter("dense")._module.parameters(), lr=0.1))
    with pytest.warns(SomaWarning, match="holds no weight of `dense_2`"):
        g.fit(X, Y, epochs=1, progress=False)


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_a_fit_where_gradients_are_off_says_so(off) -> None:
    """The cause is the caller's `with`, and not the graph."""
    with off(), pytest.raises(ModeError, match=r"gradients are off: leave `torch\.no_grad\(\)`"):
        Graph.somatize(Dense(3)).fit(X, Y, epochs=1, progress=False)

"""`validation`: judged in eval after each epoch, and nothing else moves."""

from functools import partial

import pytest
import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from soma import DifferentiableFilter, Filter, Graph
from soma.errors import InvalidInput
from tests.training.filters import Dense, Gated, Wrap, data

X, Y = data()
X_VAL, Y_VAL = data(rows=23, seed=1)
ADAM = torch.optim.Adam


def noisy_net(shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Linear(*shape, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3))


def test_the_last_validation_loss_is_that_of_the_finished_graph() -> None:
    """What the history says is what `forward` gives afterwards: eval, and never stale."""
    g = Graph.somatize(Wrap(noisy_net)).fit(X, Y, epochs=3, validation=(X_VAL, Y_VAL))

    expected = F.mse_loss(g.forward(X_VAL), Y_VAL).item()
    assert g.history[-1].validation_loss == pytest.approx(expected, rel=1e-6)
    assert g.history[-1].validation_losses == {"wrap": g.history[-1].validation_loss}


def test_it_is_not_stale_after_a_freeze_in_between() -> None:
    """A second fit judges its own weights, not the frozen ones of the first."""
    g = Graph.somatize(Wrap(noisy_net)).fit(X, Y, epochs=1, validation=(X_VAL, Y_VAL))
    g.freeze()
    g.fit(X, Y, epochs=5, validation=(X_VAL, Y_VAL))

    seen = [record.validation_loss for record in g.history]
    assert len(set(seen)) == 5
    assert seen[-1] == pytest.approx(F.mse_loss(g.forward(X_VAL), Y_VAL).item(), rel=1e-6)


def test_it_is_not_stale_after_an_epoch_that_moved_nothing() -> None:
    """Frozen weights that still hold in one epoch are not taken for those of the next."""
    g = Graph.somatize(Dense(3)).fit(X, Y, epochs=1)
    still_at_first = partial(LambdaLR, lr_lambda=lambda epoch: float(epoch > 0))
    g.fit(
        X,
        Y,
        epochs=3,
        validation=(X_VAL, Y_VAL),
        optimizer=partial(SGD, lr=0.1),
        scheduler=still_at_first,
    )

    assert len({record.validation_loss for record in g.history}) == 3


def test_weights_buffers_and_generators_are_the_same_with_and_without() -> None:
    """Not one bit of the training depends on the validation."""

    def trained(validation: object) -> tuple[list[torch.Tensor], torch.Tensor]:
        torch.manual_seed(0)
        g = Graph.somatize(Wrap(noisy_net))
        g.fit(X, Y, epochs=2, validation=validation, optimizer=ADAM)
        return list(g.filter("wrap")._module.state_dict().values()), torch.get_rng_state()

    shuffled = DataLoader(TensorDataset(X_VAL, Y_VAL), batch_size=5, shuffle=True)
    for validation in [(X_VAL, Y_VAL), shuffled]:
        with_it, without = trained(validation), trained(None)
        assert all(
            torch.equal(one, other) for one, other in zip(with_it[0], without[0], strict=True)
        )
        assert torch.equal(with_it[1], without[1])


class Slow(Filter):
    """An opaque step that notes how many rows it saw."""

    _kind = "opaque"
    seen: list[int]

    def __init__(self) -> None:
        super().__init__(seen=[])

    def forward(self, x, state):
        self.seen.append(len(x))
        return x


def test_the_opaque_prefix_of_validation_runs_once() -> None:
    """Only what training changes runs again after each epoch."""
    slow = Slow()
    Graph.somatize(slow >> Dense(3)).fit(X, Y, epochs=4, validation=(X_VAL, Y_VAL))

    assert slow.seen.count(len(X_VAL)) == 1


class KnowsItsMode(DifferentiableFilter):
    """A filter whose own `forward` drops out, and which penalises its activity."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], 3)

    def forward(self, x, state=None):
        out = F.dropout(self._module(x), training=self.training)
        return out, {"activity": out.abs().mean()}

    def compute_loss(self, out, y, aux):
        return F.mse_loss(out, y) + 0.1 * aux["activity"]


def test_a_filter_sees_eval_and_its_loss_still_gets_aux() -> None:
    """`self.training` is False during validation, and `compute_loss` is the same."""
    g = Graph.somatize(KnowsItsMode()).fit(X, Y, epochs=2, validation=(X_VAL, Y_VAL))

    out = g.forward(X_VAL)
    expected = F.mse_loss(out, Y_VAL) + 0.1 * out.abs().mean()
    assert g.history[-1].validation_loss == pytest.approx(expected.item(), rel=1e-6)


def test_a_filter_of_its_own_forward_is_judged_on_arrays_too() -> None:
    """Data as arrays is judged as tensors are."""
    x, y = load_iris(return_X_y=True)
    g = Graph.somatize(Dense(4) >> Gated(3)).fit(x, y, epochs=1, validation=(x[::2], y[::2]))

    assert g.history[0].validation_loss > 0


def test_validation_wants_the_targets_that_training_has() -> None:
    """A validation without targets is an error that names the leaf."""
    with pytest.raises(InvalidInput, match="no targets for leaf `dense` in this data"):
        Graph.somatize(Dense(3)).fit(X, Y, epochs=1, validation=(X_VAL, None))

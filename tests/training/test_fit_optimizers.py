"""Which optimizer and which scheduler a fit uses."""

from functools import partial

import pytest
import torch
from torch.optim import LBFGS, SGD, Adam
from torch.optim.lr_scheduler import ExponentialLR, ReduceLROnPlateau, StepLR

from soma import Graph
from soma.errors import InvalidInput, SomaWarning
from tests.training.filters import Dense, data

X, Y = data()


def built() -> Graph:
    return Graph.somatize(Dense(4) >> Dense(3)).fit(X, epochs=0)


def test_adam_is_the_default() -> None:
    """Without a word the optimizer is Adam with a rate of 1e-3."""
    g = built().fit(X, Y, epochs=1)

    assert isinstance(g.optimizer(), Adam)
    assert g.history[0].learning_rate == 1e-3


def test_an_optimizer_set_before_is_used() -> None:
    """`g.make_optimizer` before the fit decides."""
    g = built()
    optimizer = g.make_optimizer(SGD, lr=0.5)

    assert g.fit(X, Y, epochs=1).optimizer() is optimizer


def test_several_optimizers_step_together() -> None:
    """A dict of optimizers trains all of their weights."""
    g = built()
    first, second = (list(g.filter(node)._module.parameters()) for node in ("dense", "dense_2"))
    before = [weight.detach().clone() for weight in (*first, *second)]
    g.fit(X, Y, epochs=1, optimizer={"low": SGD(first, lr=0.1), "high": Adam(second)})

    assert not any(map(torch.equal, before, (*first, *second)))


def test_lbfgs_gets_its_closure() -> None:
    """An optimizer that evaluates the loss itself trains like any other."""
    g = Graph.somatize(Dense(3)).fit(X, Y, epochs=3, batch_size=64, optimizer=LBFGS, seed=0)
    best = torch.linalg.lstsq(torch.cat([X, torch.ones(64, 1)], 1), Y).solution
    expected = (torch.cat([X, torch.ones(64, 1)], 1) @ best - Y).square().mean().item()

    assert g.history[-1].loss == pytest.approx(expected, rel=1e-3)


def test_an_optimizer_of_another_graph_is_refused() -> None:
    """An optimizer without any of these weights would train nothing."""
    with pytest.raises(InvalidInput, match="holds none of this graph's weights"):
        built().fit(X, Y, epochs=1, optimizer=SGD(built().parameters(), lr=0.1))


@pytest.mark.parametrize("name", ["optimizer", "scheduler", "loss"])
def test_a_name_is_no_optimizer(name: str) -> None:
    """Strings are refused with what is wanted."""
    with pytest.raises(TypeError, match=f"`{name}` is 'adam'"):
        built().fit(X, Y, epochs=1, **{name: "adam"})


def test_a_scheduler_steps_once_an_epoch() -> None:
    """The history shows the rate of each epoch."""
    g = built().fit(
        X, Y, epochs=4, optimizer=partial(SGD, lr=1.0), scheduler=partial(StepLR, step_size=2)
    )

    assert [record.learning_rate for record in g.history] == [1.0, 1.0, 0.1, 0.1]


def test_a_scheduler_may_come_with_its_optimizer() -> None:
    """Instances of both are taken as they are."""
    g = built()
    optimizer = SGD(g.parameters(), lr=1.0)
    g.fit(X, Y, epochs=2, optimizer=optimizer, scheduler=ExponentialLR(optimizer, 0.5))

    assert optimizer.param_groups[0]["lr"] == 0.25


def test_a_plateau_is_looked_for_in_the_validation_loss() -> None:
    """`ReduceLROnPlateau` gets the validation loss where there is one."""
    still, plateau = partial(SGD, lr=0.0), partial(ReduceLROnPlateau, patience=0)
    seen = []

    class Watching(ReduceLROnPlateau):
        def step(self, metrics, epoch=None):
            seen.append(metrics)
            super().step(metrics)

    g = built().fit(X, Y, epochs=2, optimizer=still, validation=data(seed=3), scheduler=Watching)
    assert seen == [record.validation_loss for record in g.history]

    seen.clear()
    g.fit(X, Y, epochs=2, optimizer=still, scheduler=Watching)
    assert seen == [record.loss for record in g.history]
    assert len(g.fit(X, Y, epochs=1, optimizer=still, scheduler=plateau).history) == 1


def test_schedulers_of_several_optimizers_go_by_name() -> None:
    """A dict of schedulers, and not one function for all."""
    g = built()
    optimizers = {
        node: SGD(g.filter(node)._module.parameters(), lr=1.0) for node in ("dense", "dense_2")
    }
    with pytest.raises(InvalidInput, match="cannot tell which to schedule"):
        g.fit(X, Y, epochs=1, optimizer=optimizers, scheduler=partial(StepLR, step_size=1))
    with pytest.raises(InvalidInput, match=r"names 'dens'.*Did you mean `dense`\?"):
        g.fit(X, Y, epochs=1, scheduler={"dens": partial(StepLR, step_size=1)})

    g.fit(X, Y, epochs=1, scheduler={"dense": partial(StepLR, step_size=1)})
    assert [one.param_groups[0]["lr"] for one in optimizers.values()] == [0.1, 1.0]


def test_a_scheduler_of_another_optimizer_is_refused() -> None:
    """It would change the rate of an optimizer that is not stepped."""
    g = built()
    other = SGD(g.parameters(), lr=1.0)
    with pytest.raises(InvalidInput, match="an optimizer that this graph does not use"):
        g.fit(X, Y, epochs=1, optimizer=SGD, scheduler=StepLR(other, 1))


def test_a_fit_after_a_lost_one_starts_from_the_weights_that_were_loaded() -> None:
    """The optimizer that `fit` chose does not bring the NaN of the lost training back."""
    g = Graph.somatize(Dense(3)).fit(X, Y, epochs=1, progress=False)
    best = g.state()
    with pytest.warns(SomaWarning, match="the loss of `dense` is nan"):
        g.fit(X * float("nan"), Y, epochs=1, progress=False)
    g.load_state(best)
    with pytest.warns(SomaWarning, match=r"remembers gradients that were NaN.*It is made anew\."):
        g.fit(X, Y, epochs=1, progress=False)

    assert g.forward(X).isfinite().all()


def test_an_optimizer_of_ones_own_that_was_lost_is_told() -> None:
    """It is the user's to exchange."""
    g = Graph.somatize(Dense(3)).materialize(X)
    best = g.state()
    g.set_optimizer(torch.optim.Adam(g.parameters()))
    with pytest.warns(SomaWarning, match="the loss of `dense` is nan"):
        g.fit(X * float("nan"), Y, epochs=1, progress=False)
    g.load_state(best)
    with pytest.warns(SomaWarning) as told:
        g.fit(X, Y, epochs=1, progress=False)

    assert "Give `fit` a new one" in str(told[0].message)


@pytest.mark.parametrize("optimizer", [None, partial(SGD, lr=0.1, momentum=0.9), LBFGS])
def test_a_graph_of_another_dtype_is_trained_on(optimizer) -> None:
    """What the optimizer remembers follows the weights, and keeps its numbers."""
    g = Graph.somatize(Dense(3)).fit(X, Y, epochs=1, optimizer=optimizer, progress=False)
    before = tensors_of(g)
    g.to(dtype=torch.float64)
    after = tensors_of(g)

    assert all(map(torch.equal, [one.double() for one in before], [one.double() for one in after]))
    assert all(one.dtype == torch.float64 for one in after if one.ndim)
    assert (
        g.fit(X.double(), Y.double(), epochs=1, progress=False).forward(X.double()).isfinite().all()
    )


def tensors_of(g: Graph) -> list[torch.Tensor]:
    """Return what the optimizer remembers of the first weight."""
    remembered = next(iter(g.optimizer().state.values()))
    return [one for one in remembered.values() if isinstance(one, torch.Tensor)]

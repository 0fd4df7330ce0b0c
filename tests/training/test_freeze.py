"""What inference uses: live weights before a freeze, the twin after it, never stale ones."""

from threading import Lock

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from soma import Graph
from soma.errors import InvalidInput
from tests.training.filters import Dense, Wrap, data

X, Y = data()


def net(_: object = None) -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))


@pytest.fixture
def g() -> Graph:
    torch.manual_seed(0)
    graph = Graph.somatize(Wrap(net))
    graph.materialize(X)
    graph.train()
    graph.make_optimizer(torch.optim.SGD, lr=0.1)
    return graph


def step(g: Graph) -> None:
    with g.context() as ctx:
        g.zero_grad()
        output, _ = g.forward(X)
        g.backward(ctx, F.mse_loss(output, Y))
    g.step(ctx)


def by_hand(g: Graph) -> torch.Tensor:
    """Return what the live module gives in eval, run outside the graph."""
    module = g.filter("wrap")._live
    modes = [part.training for part in module.modules()]
    module.eval()
    with torch.no_grad():
        output = module(X)
    for part, mode in zip(module.modules(), modes, strict=True):
        part.training = mode
    return output


@pytest.mark.parametrize("freezes", [False, True])
def test_validation_between_epochs_is_never_stale(g: Graph, freezes: bool) -> None:
    """Eval after each training step gives what the weights of that moment give."""
    for _ in range(4):
        g.train()
        step(g)
        expected = by_hand(g)
        if freezes:
            g.freeze()
        g.eval()
        assert torch.equal(g.forward(X), expected)


@pytest.mark.parametrize("freezes", [False, True])
def test_validation_leaves_weights_and_generators_alone(g: Graph, freezes: bool) -> None:
    """Training with eval between its steps equals training without, to the last bit."""
    torch.manual_seed(1)
    for _ in range(4):
        g.train()
        step(g)
        if freezes:
            g.freeze()
        g.eval()
        g.forward(X)
    torch.manual_seed(0)
    other = Graph.somatize(Wrap(net))
    other.materialize(X)
    other.train()
    other.make_optimizer(torch.optim.SGD, lr=0.1)
    torch.manual_seed(1)
    for _ in range(4):
        step(other)

    mine, hers = (one.filter("wrap")._live.state_dict() for one in (g, other))
    assert all(torch.equal(mine[name], hers[name]) for name in mine)


def test_edits_of_live_weights_do_not_reach_a_frozen_graph(g: Graph) -> None:
    """After a freeze only training makes inference change."""
    g.freeze()
    before = g.forward(X)
    with torch.no_grad():
        g.filter("wrap")._live[0].weight.add_(1)

    assert torch.equal(g.forward(X), before)


def test_an_optimizer_stepped_by_the_user_is_seen(g: Graph) -> None:
    """A step that does not go through `g.step` still ends the twin's time."""
    g.freeze()
    g.train()
    with g.context() as ctx:
        output, _ = g.forward(X)
        g.backward(ctx, F.mse_loss(output, Y))
    g.optimizer().step()
    expected = by_hand(g)
    g.eval()

    assert torch.equal(g.forward(X), expected)


def test_a_step_in_eval_is_seen(g: Graph) -> None:
    """A step taken after `eval()` ends the twin's time at once."""
    output, _ = g.forward(X)
    g.backward(None, F.mse_loss(output, Y))
    g.freeze()
    g.step()

    assert torch.equal(g.forward(X), by_hand(g))


def test_train_gives_the_live_module_back(g: Graph) -> None:
    """After a freeze `_module` is the twin; `train()` brings back the one that is optimised."""
    live = g.filter("wrap")._module
    g.freeze()
    twin = g.filter("wrap")._module
    g.train()

    assert twin is not live
    assert g.filter("wrap")._module is live
    assert {id(one) for one in g.parameters()} == {
        id(one) for group in g.optimizer().param_groups for one in group["params"]
    }


def test_a_twin_carries_no_hook(g: Graph) -> None:
    """The user's hooks stay on the live module and are not copied."""
    fired = []
    g.filter("wrap")._module.register_forward_hook(lambda *_: fired.append(1))
    g.freeze()
    g.forward(X)

    assert fired == []
    assert len(g.filter("wrap")._live._forward_hooks) == 1


def test_two_freezes_with_training_between_give_two_states(g: Graph) -> None:
    """A node state is a snapshot."""
    g.freeze()
    first = g.get_node_state("wrap")["weights_b64"]
    g.train()
    step(g)
    g.freeze()

    assert g.get_node_state("wrap")["weights_b64"] != first


def test_a_shared_module_stays_shared_in_its_twins() -> None:
    """Two nodes with one module have one twin."""
    shared = nn.Linear(6, 6)
    g = Graph.somatize(Wrap(lambda _: shared) >> Wrap(lambda _: shared))
    g.materialize(X)
    g.freeze()

    assert g.filter("wrap")._module is g.filter("wrap_2")._module
    assert g.filter("wrap")._module is not shared


def test_a_node_state_moves_weights_to_another_graph(g: Graph) -> None:
    """Set before or after the modules are built, a state brings its weights."""
    g.freeze()
    for built in (True, False):
        other = Graph.somatize(Wrap(net))
        if built:
            other.materialize(X)
        other.set_node_state("wrap", dict(g.get_node_state("wrap")))
        other.materialize(X)
        assert torch.equal(other.forward(X), g.forward(X))


def test_old_weight_normalisation_survives_a_freeze() -> None:
    """A weight that a hook of torch computes at each call is computed in the twin too."""
    with pytest.warns(FutureWarning):
        module = nn.utils.weight_norm(nn.Linear(6, 3))
    g = Graph.somatize(Wrap(lambda _: module))
    g.materialize(X)
    g.train()
    g.forward(X)
    g.freeze()

    assert torch.equal(g.forward(X), module(X).detach())


def test_evaluating_restores_every_mode(g: Graph) -> None:
    """A submodule kept in eval inside training is still so afterwards."""
    g.filter("wrap")._module[1].eval()
    with g.evaluating():
        assert not g.training
        g.forward(X)

    modes = [part.training for part in g.filter("wrap")._module]
    assert (g.training, modes) == (True, [True, False, True, True])


def test_a_filter_in_eval_inside_training_keeps_autograd_live() -> None:
    """The mode of one filter sets its module; the graph's mode decides about gradients."""
    g = Graph.somatize(Dense(4) >> Wrap(lambda s: nn.Sequential(nn.BatchNorm1d(s[-1]))))
    g.materialize(X)
    g.train()
    g.filter("wrap").eval()
    output, _ = g.forward(X)

    assert output.requires_grad
    assert g.filter("wrap")._module[0].num_batches_tracked == 0


class Watched(Wrap):
    """Adds a signal to what the base gives."""

    def forward(self, x, state=None):
        output, aux = super().forward(x, state)
        return output, {**aux, "seen": 1}


def test_a_forward_that_calls_the_base_is_never_stale() -> None:
    """The state of an earlier freeze does not take the place of newer weights."""
    g = Graph.somatize(Watched(lambda s: nn.Linear(s[-1], 3)))
    for _ in range(2):
        g.fit(X, Y, epochs=2, progress=False)
        g.train()
        g.make_optimizer(torch.optim.SGD, lr=0.5)
        step(g)
        with g.evaluating(), torch.no_grad():
            assert torch.equal(g.forward(X), g.filter("watched")._live(X))


class Keeping(nn.Module):
    """Keeps what it computed, as maps of attention are kept to be looked at."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 3)
        self.lock = Lock()
        self.kept: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = [self.inner(x)]
        return self.kept[0]


def test_a_module_with_parts_that_cannot_be_copied_freezes() -> None:
    """Locks and kept activations are shared with the twin, weights are not."""
    g = Graph.somatize(Wrap(lambda s: Keeping(s[-1])))
    g.fit(X, Y, epochs=1, progress=False)
    twin, live = g.filter("wrap")._module, g.filter("wrap")._live

    assert twin is not live
    assert twin.inner.weight is not live.inner.weight
    assert torch.equal(g.forward(X), live(X).detach())


def test_what_is_written_to_a_twin_is_kept_by_training(g: Graph) -> None:
    """After a freeze `_module` is the twin, and edits of it are meant."""
    g.freeze()
    other = net()
    g.filter("wrap")._module.load_state_dict(other.state_dict())
    g.filter("wrap")._module[0].requires_grad_(False)
    g.train()
    live = g.filter("wrap")._module

    assert torch.equal(live[0].weight, other[0].weight)
    assert [one.requires_grad for one in live[0].parameters()] == [False, False]
    assert live[3].weight.requires_grad


def test_a_graph_in_training_takes_back_filters_that_another_froze() -> None:
    """The mode of the graph decides about gradients, whoever else holds the filter."""
    shared = Dense(3)
    g, other = Graph.somatize(shared), Graph.somatize(shared)
    g.materialize(X)
    g.train()
    other.freeze()
    output, _ = g.forward(X)

    assert output.requires_grad


def test_a_refused_state_changes_nothing() -> None:
    """Weights of another shape are refused before the first of them is written."""
    donor = Graph.somatize(Wrap(lambda s: nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2))))
    donor.materialize(X)
    state = dict(donor.freeze().get_node_state("wrap"))
    g = Graph.somatize(Wrap(lambda s: nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3))))
    g.materialize(X)
    before = g.forward(X)
    with pytest.raises(InvalidInput, match=r"another module: `1.weight` is .*\(2, 4\)"):
        g.set_node_state("wrap", state)

    assert torch.equal(g.forward(X), before)
    assert g.get_node_state("wrap") is None


def test_a_state_that_does_not_fit_is_refused_each_time() -> None:
    """A module that was built for a wrong state is not left behind with random weights."""
    donor = Graph.somatize(Dense(2))
    donor.materialize(X)
    g = Graph.somatize(Dense(3))
    g.set_node_state("dense", dict(donor.freeze().get_node_state("dense")))
    for _ in range(2):
        with pytest.raises(InvalidInput, match="another module"):
            g.materialize(X)

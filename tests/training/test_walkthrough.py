"""The promises about gradients and training, walked through as a user would."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from soma import DifferentiableFilter, Filter, Graph, Inputs
from tests.training.filters import Concatenate, Dense, Gated, Rounded, Standardize, Wrap, data

X, Y = data()


def steps(g: Graph, count: int = 20) -> list[float]:
    losses = []
    for _ in range(count):
        with g.context() as ctx:
            g.zero_grad()
            output, _ = g.forward(X)
            loss = F.mse_loss(output, Y)
            g.backward(ctx, loss)
        g.step(ctx)
        losses.append(loss.item())
    return losses


def test_the_canonical_loop_learns_and_predicts_after_freeze() -> None:
    """Materialise, train, step, freeze, predict: the loss falls and eval agrees with it."""
    torch.manual_seed(0)
    g = Graph.somatize(Dense(8) >> Dense(3))
    g.materialize(X)
    g.train()
    g.make_optimizer(torch.optim.Adam, lr=1e-2)
    losses = steps(g, 60)
    g.freeze()
    g.eval()

    assert losses[-1] < losses[0]
    assert F.mse_loss(g.forward(X), Y).item() < losses[0]


def test_gradients_reach_the_input_through_the_whole_graph() -> None:
    """In eval an input that asks for a gradient gets the one that autograd gives by hand."""
    torch.manual_seed(0)
    g = Graph.somatize(Standardize() >> Dense(8, nn.ReLU) >> Dense(3))
    g.fit(X, Y, epochs=1, progress=False)
    x = X.clone().requires_grad_()
    F.mse_loss(g.forward(x), Y).backward()
    assert all(
        one.grad is None for _, filter in g.filters()[1:] for one in filter._module.parameters()
    )

    by_hand = X.clone().requires_grad_()
    scaled = (by_hand - X.mean(0)) / X.std(0)
    first, second = (g.filter(node)._module for node in ("dense", "dense_2"))
    F.mse_loss(second(first(scaled)), Y).backward()
    assert torch.equal(x.grad, by_hand.grad)


def test_the_gradient_of_the_input_leaves_live_weights_alone() -> None:
    """Before any freeze too, only the input gets a gradient, and weights still ask for theirs."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    x = X.clone().requires_grad_()
    g.forward(x).sum().backward()

    assert x.grad is not None
    assert all(one.grad is None and one.requires_grad for one in g.parameters())


def test_a_mixed_graph_warns_and_trains_behind_the_cut() -> None:
    """An opaque root is told by the compiler; the modules behind it get their gradients."""
    g = Graph.somatize(Rounded() >> Standardize() >> Dense(3))
    warned = [one for one in g.compile("differentiable").diagnostics if one.level == "warning"]
    g.fit(X, Y, epochs=0)
    g.train()
    output, _ = g.forward(X)
    g.backward(None, F.mse_loss(output, Y))

    assert [(one.code, one.node) for one in warned] == [("gradient", "rounded")]
    assert all(parameter.grad is not None for parameter in g.parameters())


def test_auxiliary_signals_reach_the_same_weights() -> None:
    """Aux is collected by node, keeps its history, and its loss moves the node's weights."""
    torch.manual_seed(0)
    g = Graph()
    g.node("body", Dense(8, nn.ReLU))
    g.node("classifier", Gated(3))
    g.connect("body", "classifier")
    g.materialize(X)
    g.train()
    _, aux = g.forward(X)
    g.backward(None, 0.1 * aux["classifier"]["gate"].abs().mean())

    assert list(aux) == ["classifier"]
    gates = g.filter("classifier")._module["gate"].parameters()
    assert all(one.grad.abs().sum() > 0 for one in gates)
    assert all(one.grad.abs().sum() > 0 for one in g.filter("body")._module.parameters())


def test_the_mode_of_the_graph_decides_what_forward_gives() -> None:
    """Training gives a pair with autograd live, eval the output alone and without."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    output = g.forward(X)
    g.train()
    pair = g.forward(X)

    assert isinstance(output, torch.Tensor)
    assert not output.requires_grad
    assert pair[0].requires_grad
    assert pair[1] == {}


def test_a_filter_works_alone() -> None:
    """Outside a graph a filter answers `(output, aux)`, as a list for a list in eval."""
    layer = Dense(3)
    layer.materialize((6,))
    evaluated, aux = layer.forward(X.tolist())
    layer.train()
    trained, _ = layer.forward(X)

    assert (type(evaluated), aux) == (list, {})
    assert trained.requires_grad
    assert torch.equal(torch.tensor(evaluated), trained.detach())


def test_a_filter_alone_takes_weights_from_a_state() -> None:
    """The state of a frozen node gives its weights to a filter outside the graph."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    g.freeze()
    other = Dense(3)
    other.materialize((6,))
    output, _ = other.forward(X, g.get_node_state("dense"))

    assert torch.equal(output, g.forward(X))
    assert set(g.get_node_state("dense")) == {"weights_b64"}


def test_a_graph_without_modules_gives_a_pair_in_training_too() -> None:
    """The return type follows the mode, not what the graph is made of."""

    class Double(Filter):
        def forward(self, x, state):
            return 2 * x

    g = Graph.somatize(Double())
    g.train()
    output, aux = g.forward(X)

    assert torch.equal(output, 2 * X)
    assert aux == {}


def test_a_filter_that_detaches_is_told_where_its_gradient_is_lost() -> None:
    """A forward that detaches in eval gives one warning that names the node."""

    class Detaching(DifferentiableFilter):
        def build_module(self, input_shape):
            return nn.Linear(input_shape[-1], 3)

        def forward(self, x, state=None):
            output = self._module(x)
            return (output, {}) if self.training else (output.detach().tolist(), {})

    g = Graph.somatize(Detaching())
    g.materialize(X)
    with pytest.warns(UserWarning, match=r"^cut: .*`detaching`"):
        output = g.forward(X.clone().requires_grad_())

    assert isinstance(output, torch.Tensor)


def test_no_grad_around_eval_is_respected() -> None:
    """Under `torch.no_grad()` an input that asks for a gradient gets none, and no warning."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        output = g.forward(X.clone().requires_grad_())

    assert not output.requires_grad


def test_a_checkpointed_module_gives_the_gradient_of_the_input() -> None:
    """What runs again in the backward finds its weights still at rest."""

    class Checkpointed(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.inner, x, use_reentrant=False)

    g = Graph.somatize(Wrap(lambda s: Checkpointed(s[-1])))
    g.materialize(X)
    x = X.clone().requires_grad_()
    g.forward(x).sum().backward()

    assert x.grad.abs().sum() > 0
    assert all(one.grad is None and one.requires_grad for one in g.parameters())


def test_each_input_that_asks_for_a_gradient_is_told_when_it_gets_none() -> None:
    """Of two inputs one is cut: the warning names where."""
    g = Graph()
    g.node("seen", Dense(3))
    g.node("hidden", Rounded())
    g.node("join", Concatenate(2))
    g.connect("seen", "join").connect("hidden", "join")
    g.materialize(Inputs(seen=X, hidden=X))
    parts = {name: X.clone().requires_grad_() for name in ("seen", "hidden")}
    with pytest.warns(UserWarning, match=r"^cut: .* lost at `hidden`"):
        g.forward(Inputs(parts)).sum().backward()

    assert parts["seen"].grad is not None
    assert parts["hidden"].grad is None


def test_a_forward_that_calls_the_base_gives_the_gradient_of_the_input() -> None:
    """What the base does in eval does not cut the gradient that was asked for."""

    class Doubled(Dense):
        def forward(self, x, state=None):
            output, aux = super().forward(x, state)
            return 2 * output, aux

    g = Graph.somatize(Doubled(3))
    g.materialize(X)
    x = X.clone().requires_grad_()
    g.forward(x).sum().backward()

    assert x.grad.abs().sum() > 0

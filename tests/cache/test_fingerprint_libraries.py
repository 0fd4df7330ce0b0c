"""Modules of torch and estimators of scikit-learn in a configuration count by what they hold."""

from collections.abc import Callable
from typing import Any

import pytest

import soma
from soma import Filter
from soma.cache._fingerprint import Unfingerprintable, identity

torch = pytest.importorskip("torch")
nn = torch.nn


class F(Filter):
    """A filter with any attributes."""

    def forward(self, x: object, state: object) -> object:
        return x


class Net(nn.Module):  # type: ignore[misc, name-defined]
    """A module of the user."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        self.gain = gain

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.gain


def told(value: object) -> str:
    """Return the digest of a filter with one attribute."""
    return identity(F(k=value)).digest


def touch(change: Callable[[Any], object]) -> str:
    """Return the digest with a module that was changed."""
    net = Net()
    change(net)
    return told(net)


CHANGES = {
    "weight": lambda net: net.layer[0].weight.data.add_(1),
    "buffer": lambda net: net.layer[1].running_mean.add_(1),
    "attribute": lambda net: setattr(net, "gain", 2.0),
    "part": lambda net: net.layer.append(nn.ReLU()),
    "attribute of a part": lambda net: setattr(net.layer[1], "eps", 1e-3),
    "mode": lambda net: net.eval(),
    "hook": lambda net: net.register_forward_hook(lambda *args: None),
    "type": lambda net: net.double(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_module_counts_by_weights_parts_and_attributes(what: str) -> None:
    """Whatever of a module decides its output is part of the identity."""
    assert told(Net()) == told(Net())
    assert touch(CHANGES[what]) != told(Net())


def test_gradients_and_removed_hooks_do_not_count() -> None:
    """What training leaves behind is no part of a module."""
    net = Net()
    net.register_forward_hook(lambda *args: None).remove()
    net.requires_grad_(False)
    net.layer[0].bias.grad = torch.ones(2)

    assert told(net) == told(Net())


class Dense(soma.DifferentiableFilter):
    """A filter with weights."""

    def build_module(self, input_shape: Any) -> Any:
        return nn.Linear(input_shape[-1], 2)


def test_modes_and_weights_are_no_part_of_a_trainable_filter() -> None:
    """Its weights are its state and its mode is that of the graph: both are keyed elsewhere."""
    filter = Dense(width=2)
    before = identity(filter)
    filter.materialize((3,))
    filter.train()

    assert identity(filter) == before
    assert before.libraries["torch"] == torch.__version__


class Both(Filter, nn.Module):  # type: ignore[misc, name-defined]
    """A filter that is a module too."""

    def __init__(self, seed: int) -> None:
        nn.Module.__init__(self)
        torch.manual_seed(seed)
        self.layer = nn.Linear(1, 1)

    def forward(self, x: Any, state: object = None) -> Any:
        return self.layer(x)


def test_a_filter_that_is_a_module_counts_by_its_weights() -> None:
    """Weights that nobody keys elsewhere are part of the identity."""
    one, other = Both(1), Both(1)
    assert identity(one) == identity(other)
    other.layer.weight.data.add_(1)

    assert identity(one).digest != identity(other).digest


def test_generators_of_torch_are_refused() -> None:
    """A generator moves on with each draw."""
    with pytest.raises(Unfingerprintable, match="random generator"):
        told(torch.Generator())


def test_estimators_count_by_parameters_and_by_what_they_learnt() -> None:
    """An estimator of scikit-learn is told by its parameters, fitted or not."""
    linear = pytest.importorskip("sklearn.linear_model")
    digests = [
        told(make())
        for make in (
            lambda: linear.Ridge(alpha=1),
            lambda: linear.Ridge(alpha=2),
            lambda: linear.Ridge(alpha=1).fit([[0.0], [1.0]], [0.0, 1.0]),
            lambda: linear.Ridge(alpha=1).fit([[0.0], [1.0]], [0.0, 2.0]),
            lambda: linear.Lasso(alpha=1),
        )
    ]

    assert len(set(digests)) == 5
    assert digests[0] == told(linear.Ridge(alpha=1))

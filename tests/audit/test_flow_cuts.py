"""Where the gradient stops."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.audit.flows import arrows, edges, flow_of

PAIR = {"a": (6, 6), "b": (6, 6)}


def pair() -> nn.ModuleDict:
    return nn.ModuleDict({name: nn.Linear(*sizes) for name, sizes in PAIR.items()})


def no_grad_block(m, x):
    with torch.no_grad():
        y = m["a"](x)
    return m["b"](y)


def through_numpy(m, x):
    y = np.tanh(m["a"](x).detach().numpy())
    return m["b"](torch.from_numpy(y))


def twice_through_numpy(m, x):
    y = torch.from_numpy(np.tanh(m["a"](x).detach().numpy()))
    return m["b"](torch.from_numpy(np.tanh(y.numpy())))


def as_array(m, x):
    return m["b"](torch.as_tensor(np.asarray(m["a"](x).detach())))


def by_item(m, x):
    y = m["a"](x)
    return m["b"](y * y.mean().item())


class Inside(nn.Module):
    """Stops its gradient."""

    def forward(self, x):
        return (x * 2).detach()


CUTS = {
    "detach": (lambda m, x: m["b"](m["a"](x).detach()), "input > a >detach> b > output"),
    "data": (lambda m, x: m["b"](m["a"](x).data), "input > a >detach> b > output"),
    "no_grad": (no_grad_block, "input > a >no_grad> b > output"),
    "numpy": (through_numpy, "input > a >numpy> numpy_1 > b > output"),
    "numpy twice": (
        twice_through_numpy,
        "input > a >numpy> numpy_1 > numpy_2 > b > output",
    ),
    "asarray": (as_array, "input > a >numpy> numpy_1 > b > output"),
    "item": (by_item, "input > a > mean_1 >item> item_1, a > mul_1 > b > output"),
    "zero": (
        lambda m, x: m["a"](x) + 0.0 * m["b"](x),
        "input > a > add_1 > output, input > b > mul_1 > add_1",
    ),
    "module": (
        lambda m, x: m["b"](Inside()(m["a"](x))),
        "input > a > mul_1 >detach> b > output",
    ),
}


@pytest.mark.parametrize("name", CUTS)
def test_cut(name: str) -> None:
    """Each way to stop a gradient is a cut at its place, and a product with zero is none."""
    function, expected = CUTS[name]

    assert edges(flow_of(pair(), function=function)) == arrows(expected)


def test_a_module_that_stops_is_opened() -> None:
    """A submodule that stops a gradient inside shows where."""
    module = nn.Sequential(nn.Linear(6, 6), Inside(), nn.Linear(6, 2))

    assert edges(flow_of(module)) == arrows("input > 0 > mul_1 >detach> 2 > output")


def test_nothing_to_cut() -> None:
    """Detaching what asks for no gradient is no cut."""
    flow = flow_of(nn.Linear(6, 2), function=lambda m, x: m(x.detach()))

    assert edges(flow) == arrows("input > Linear > output")


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint(use_reentrant: bool) -> None:
    """A checkpoint cuts nothing, and computing again in a backward counts nothing."""

    def forward(m, x):
        if not torch.is_grad_enabled():  # while it is being built
            return m["b"](m["a"](x))
        y = checkpoint(m["b"], m["a"](x), use_reentrant=use_reentrant)
        y.sum().backward(retain_graph=True)
        return y

    flow = flow_of(pair(), function=forward)

    assert edges(flow) == arrows("input > a > b > output, b > sum_1")


def test_autograd_function() -> None:
    """Gradients pass an `autograd.Function`, though it runs without them."""

    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    flow = flow_of(nn.Linear(6, 2), function=lambda m, x: Clamp.apply(m(x)))

    assert edges(flow) == arrows("input > Linear > clamp_1 > output")

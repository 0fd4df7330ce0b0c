"""A number that is not finite is followed to the operation that made it."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import soma
from soma.health import Origin
from tests.audit.loops import X


class Does(nn.Module):
    """Applies a function; a module of its own, so that it has a name."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def around(function, width: int = 4) -> nn.Module:
    """Put a function between two layers, with dropout and statistics that a second run draws on."""
    first, last = nn.Linear(4, 4), nn.Linear(width, 2)
    return nn.Sequential(first, nn.BatchNorm1d(4), nn.Dropout(0.5), Does(function), last)


def origins(model: nn.Module, loss=lambda out: out.square().mean(), x=X, steps=2) -> list[Origin]:
    """Train a model; return what the audit found, after a look at what it left behind."""
    ends = []
    for watched in (False, True):
        torch.manual_seed(0)
        copy = deepcopy(model)
        optimizer = torch.optim.SGD(copy.parameters(), lr=0.01)
        with soma.audit_modules({"m": copy} if watched else {}, inside=True) as audit:
            for _ in range(steps):
                optimizer.zero_grad()
                loss(copy(x)).backward()
                optimizer.step()
        ends.append([torch.get_rng_state(), *copy.state_dict().values()])
    for mine, theirs in zip(*ends, strict=True):
        assert torch.equal(torch.nan_to_num(mine.float()), torch.nan_to_num(theirs.float()))
    assert audit.measurements.notes == []
    return audit.measurements.origins


CASES = {
    "log of zero": (lambda x: torch.log(F.relu(x)), "log", "inf"),
    "zero by zero": (lambda x: F.relu(x) / F.relu(x), "div", "nan"),
    "overflow of half": (lambda x: ((x + 9) * 1e3).half().square().float(), "pow", "inf"),
    "a row all masked": (
        lambda x: torch.softmax(x.masked_fill(x == x, -torch.inf), 1),
        "softmax",
        "nan",
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_made_in_the_forward(case: str) -> None:
    """Module, operation and value are right, and the first bad one is told alone."""
    function, operation, value = CASES[case]
    torch.manual_seed(0)

    (origin,) = origins(around(function))

    assert (origin.step, origin.unit, origin.phase) == (0, "m/3", "forward")
    assert (origin.operation, origin.value) == (operation, value)


def test_made_in_the_backward() -> None:
    """The square root of zero is fine, its slope is not."""
    torch.manual_seed(0)

    (origin,) = origins(around(lambda x: torch.sqrt((x - x.detach()).square())))

    assert (origin.unit, origin.phase, origin.operation) == ("m/3", "backward", "sqrt")


def test_a_mask_is_no_origin() -> None:
    """A mask of -inf before a softmax goes by unnoticed; what happens after it does not."""
    mask = torch.tensor([True, False, False, False])

    def function(x):
        return torch.log(torch.softmax(x.masked_fill(mask, -torch.inf), 1))

    torch.manual_seed(0)

    (origin,) = origins(around(function))

    assert (origin.operation, origin.unit) == ("log", "m/3")


def test_made_in_the_loss() -> None:
    """What the loss function makes is outside of every module."""
    torch.manual_seed(0)

    (origin,) = origins(around(lambda x: x), loss=lambda out: (out * 0).log().mean())

    assert (origin.unit, origin.phase) == (None, "loss")


def test_in_the_data() -> None:
    """NaN in the input is nobody's fault here."""
    bad = X.clone()
    bad[3, 1] = torch.nan

    (origin,) = origins(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), x=bad)

    assert (origin.unit, origin.phase, origin.value) == (None, "data", "nan")


def test_in_a_weight() -> None:
    """A weight that is NaN before the step is named."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    with torch.no_grad():
        model[2].bias[0] = torch.nan

    (origin,) = origins(model)

    assert (origin.unit, origin.phase) == ("m/2", "weights")
    assert "bias" in origin.detail


def test_an_exploding_state() -> None:
    """A recurrent state that grows beyond bounds is followed to its cell."""

    class Grows(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            for _ in range(60):
                x = self.cell(x) * 1e3
            return self.head(x)

    torch.manual_seed(0)

    (origin,) = origins(Grows())

    assert origin.phase == "forward"
    assert origin.unit in ("m", "m/cell")
    assert origin.operation in ("mul", "addmm")
    assert origin.value == "inf"


def test_only_once_and_only_when_bad() -> None:
    """A healthy step has no origin, and of bad ones the first is told."""
    count = iter(range(99))

    def function(x):
        return x / 0.0 if next(count) >= 2 else x

    torch.manual_seed(0)
    model = around(lambda x: x)
    model[3] = Does(function)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with soma.audit_modules({"m": model}, inside=True) as audit:
        for _ in range(5):
            optimizer.zero_grad()
            model(X).square().mean().backward()
            optimizer.step()

    assert [one.step for one in audit.measurements.origins] == [2]


def test_in_a_graph() -> None:
    """In a graph the node is named, and nothing is left behind by the second run."""

    class Log(soma.DifferentiableFilter):
        def build_module(self, input_shape):
            return nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU())

        def forward(self, x, state=None):
            return torch.log(self._module(x)), {}

    class Dense(soma.DifferentiableFilter):
        def build_module(self, input_shape):
            return nn.Linear(4, 2)

    g = soma.Graph(cache=None)
    g.node("log", Log())
    g.node("head", Dense())
    g.connect("log", "head")
    g.materialize(X)
    g.train()
    g.make_optimizer(torch.optim.SGD, lr=0.1)
    with g.gradient_audit() as audit, g.context() as ctx:
        output, _ = g.forward(X)
        before = torch.get_rng_state()
        g.backward(ctx, output.square().mean())
        g.step(ctx)

    (origin,) = audit.measurements.origins
    assert (origin.operation, origin.phase) == ("log", "forward")
    assert torch.equal(before, torch.get_rng_state())
    assert not audit.measurements.notes

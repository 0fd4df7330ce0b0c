"""Modules that are called with gradients off only."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import nn
from torch.optim import SGD, Optimizer

from soma import DifferentiableFilter, Graph
from soma.audit import Audit, audit_modules

STEPS = 8


def loop(
    first: nn.Module,
    head: nn.Module,
    optimizer: Optimizer,
    mode: Callable[[], AbstractContextManager[None]],
) -> Audit:
    """Train `head` behind `first`, which is called in a mode such as `torch.no_grad`."""
    x, y = torch.randn(32, 8), torch.randint(0, 2, (32,))
    with audit_modules({"first": first, "head": head}, optimizer) as audit:
        for _ in range(STEPS):
            optimizer.zero_grad()
            with mode():
                given = first(x)
            nn.functional.cross_entropy(head(given.clone()), y).backward()
            optimizer.step()
    return audit


@pytest.fixture
def parts() -> tuple[nn.Module, nn.Module]:
    """An encoder and a head."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_an_encoder_of_the_optimizer_under_no_grad_is_no_grad(
    parts: tuple[nn.Module, nn.Module], mode: Callable[[], AbstractContextManager[None]]
) -> None:
    """It is called, so it is not UNUSED; its weights never get a gradient."""
    first, head = parts
    audit = loop(first, head, SGD([*first.parameters(), *head.parameters()], lr=0.1), mode)

    found = audit.report().by_id()
    assert found["first"].flags == ["NO_GRAD"]
    assert found["head"].flags == []
    assert "with gradients off only, in 8 steps" in found["first"].findings[0].why


def test_a_target_network_is_no_fault(parts: tuple[nn.Module, nn.Module]) -> None:
    """What no optimizer holds and is called under `no_grad`, as a teacher is, learns by choice."""
    first, head = parts
    audit = loop(first, head, SGD(head.parameters(), lr=0.1), torch.no_grad)

    assert audit.report().is_healthy()


def test_a_target_network_that_follows_its_model_is_no_fault() -> None:
    """A moving average of the weights is called with gradients off, and no optimizer holds it."""
    torch.manual_seed(0)
    online, target = nn.Linear(8, 4), nn.Linear(8, 4)
    optimizer = SGD(online.parameters(), lr=0.1)
    x = torch.randn(32, 8)
    with audit_modules({"online": online, "target": target}, optimizer) as audit:
        for _ in range(STEPS):
            optimizer.zero_grad()
            with torch.no_grad():
                aim = target(x)
            nn.functional.mse_loss(online(x), aim).backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
                    slow.lerp_(fast, 0.1)

    assert audit.report().is_healthy()


def test_a_part_that_only_validation_calls_is_no_grad() -> None:
    """A second head that is called under `no_grad` between steps learns nothing."""
    torch.manual_seed(0)
    body, used, other = nn.Linear(8, 8), nn.Linear(8, 2), nn.Linear(8, 2)
    modules = {"body": body, "used": used, "other": other}
    optimizer = SGD([p for one in modules.values() for p in one.parameters()], lr=0.1)
    x, y = torch.randn(32, 8), torch.randint(0, 2, (32,))
    with audit_modules(modules, optimizer) as audit:
        for _ in range(STEPS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(used(body(x)), y).backward()
            optimizer.step()
            with torch.no_grad():
                other(body(x))

    assert [(one.filter_id, one.flags) for one in audit.report().filters if one.flags] == [
        ("other", ["NO_GRAD"])
    ]


class Encoder(DifferentiableFilter):
    """A layer that its filter calls with gradients off."""

    def build_module(self, input_shape: tuple[int, ...]) -> nn.Module:
        """Build the layer."""
        return nn.Linear(input_shape[-1], 8)

    def forward(
        self, x: torch.Tensor, state: object = None
    ) -> tuple[torch.Tensor, dict[str, object]]:
        """Call it."""
        with torch.no_grad():
            return self._module(x), {}


class Head(DifferentiableFilter):
    """A layer."""

    def build_module(self, input_shape: tuple[int, ...]) -> nn.Module:
        """Build it."""
        return nn.Linear(input_shape[-1], 2)


def test_a_node_of_a_graph_that_turns_gradients_off_is_no_grad() -> None:
    """The filter's own `forward` may be where they are turned off."""
    g = Graph.somatize(Encoder() >> Head(), cache=None)
    x, y = torch.randn(32, 8), torch.randint(0, 2, (32,))
    g.materialize(x)
    g.train()
    g.make_optimizer(SGD, lr=0.1)
    with g.gradient_audit() as audit:
        for _ in range(STEPS):
            with g.context() as ctx:
                g.zero_grad()
                g.backward(ctx, nn.functional.cross_entropy(g.forward(x)[0], y))
            g.step(ctx)

    assert audit.report().by_id()["encoder"].flags == ["NO_GRAD"]


def test_what_learns_from_gradients_put_there_by_hand_is_no_fault() -> None:
    """`.grad` is filled from `torch.autograd.grad`: weights move, and no backward was seen."""
    torch.manual_seed(0)
    net, (x, y) = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)), torch.randn(2, 32, 8)
    optimizer = SGD(net.parameters(), lr=0.1)
    with audit_modules({"net": net}, optimizer, inside=True) as audit:
        for _ in range(STEPS):
            loss = nn.functional.mse_loss(net(x), y[:, :2])
            gradients = torch.autograd.grad(loss, list(net.parameters()))
            for parameter, gradient in zip(net.parameters(), gradients, strict=True):
                parameter.grad = gradient
            optimizer.step()

    found = {row.filter_id: row.flags for row in audit.report().filters if row.flags}
    assert set(found) == {"net", "net/0", "net/2"}
    assert all(flags == ["UNOBSERVED(no output gradient)"] for flags in found.values())

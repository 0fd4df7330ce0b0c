"""The loss, found where nobody tells it."""

from collections.abc import Callable
from threading import Thread

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import soma
from soma.audit._step._loss import loss_on_stack
from soma.audit._step._trace import StepTrace
from tests.audit.loops import X, laws

Backward = Callable[[nn.Module, list[float]], None]


def _one(net: nn.Module, told: list[float]) -> None:
    loss = net(X).square().mean()
    loss.backward()
    told.append(float(loss.detach()))


def _two_in_turn(net: nn.Module, told: list[float]) -> None:
    for _ in range(2):
        _one(net, told)


def _two_at_once(net: nn.Module, told: list[float]) -> None:
    losses = [net(X).square().mean(), net(X).mean()]
    torch.autograd.backward(losses)
    told.extend(float(one.detach()) for one in losses)


def _checkpointed(net: nn.Module, told: list[float]) -> None:
    x = X.clone().requires_grad_()
    loss = checkpoint(net, x, use_reentrant=True).square().mean()
    loss.backward()
    told.append(float(loss.detach()))


def _penalised(net: nn.Module, told: list[float]) -> None:
    loss = net(X).square().mean()
    gradients = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
    loss = loss + sum(one.square().sum() for one in gradients)
    loss.backward()
    told.append(float(loss.detach()))


def _on_a_thread(net: nn.Module, told: list[float]) -> None:
    thread = Thread(target=_one, args=(net, told))
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    "backward", [_one, _two_in_turn, _two_at_once, _checkpointed, _penalised, _on_a_thread]
)
def test_the_loss_is_found(backward: Backward) -> None:
    """Whatever a backward starts from is the loss of its step; several are added up."""
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    truth: list[float] = []
    with soma.audit_modules({"net": net}, optimizer) as audit:
        for _ in range(3):
            told: list[float] = []
            optimizer.zero_grad()
            backward(net, told)
            optimizer.step()
            truth.append(sum(told))
    assert [one.loss for one in audit.measurements.steps] == pytest.approx(truth)


def test_a_loss_in_parts_is_not_known() -> None:
    """A backward with gradients of its own has no loss, and the report says what that costs."""

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> None:
        optimizer.zero_grad()
        output = model(x)
        output.backward(torch.ones_like(output))
        optimizer.step()

    audit = laws(lambda: nn.Linear(4, 2), step=step)

    assert [one.loss for one in audit.measurements.steps] == [None] * 3
    assert "note: the loss is not known" in audit.report().pretty()


def test_a_closure_tells_its_first_loss() -> None:
    """An optimizer that asks for the loss again within a step is judged by where it began."""
    net = nn.Linear(4, 2)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
    seen: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        _one(net, seen)
        return torch.tensor(seen[-1])

    with soma.audit_modules({"net": net}, optimizer) as audit:
        optimizer.step(closure)

    assert len(seen) > 1
    assert [one.loss for one in audit.measurements.steps] == [pytest.approx(seen[0])]


def test_the_loss_is_found_from_the_engines_own_thread() -> None:
    """A hook on another thread than the backward, as on a GPU, finds the only one that waits."""
    found: list[float] = []

    def look() -> None:
        trace = StepTrace(0, whole=True, began=0.0)
        found.extend(float(one) for one in loss_on_stack(trace, 1))

    def hook(_: Tensor) -> None:
        thread = Thread(target=look)
        thread.start()
        thread.join()

    x = torch.ones(3, requires_grad=True)
    x.register_hook(hook)
    (2.0 * x.sum()).backward()

    assert found == [6.0]

"""Networks that return their loss: gradients are compared with what the loss is made of."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import soma
from soma.audit import Audit

X = torch.randn(16, 6, generator=torch.Generator().manual_seed(0))
Y = torch.arange(16) % 3
Result = Callable[[Tensor, Tensor, Tensor], object]  # of logits, hidden states and loss


class Judging(nn.Module):
    """A classifier that takes its own loss."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 3)
        self.result = result

    def forward(self, x: Tensor) -> object:
        hidden = self.body(x)
        logits = self.head(hidden.tanh())
        return self.result(logits, hidden, F.cross_entropy(logits, Y))


def _of_a_dict(logits: Tensor, hidden: Tensor, loss: Tensor) -> object:
    return {"loss": loss, "logits": logits, "hidden": hidden}


def _of_a_tuple(logits: Tensor, hidden: Tensor, loss: Tensor) -> object:
    return logits, loss


def _alone(logits: Tensor, hidden: Tensor, loss: Tensor) -> object:
    return loss


def _loss(returned: object) -> Tensor:
    if isinstance(returned, dict):
        return returned["loss"]
    return returned[-1] if isinstance(returned, tuple) else returned  # type: ignore[return-value]


def _trained(net: nn.Module, steps: int = 4, rate: float = 0.1, **options: object) -> Audit:
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    with soma.audit_modules({"net": net}, optimizer, inside=True, **options) as audit:  # type: ignore[arg-type]
        for _ in range(steps):
            optimizer.zero_grad()
            _loss(net(X)).backward()
            optimizer.step()
    return audit


@pytest.mark.parametrize("result", [_of_a_dict, _of_a_tuple, _alone])
def test_the_gradient_at_the_logits_is_the_measure(result: Result) -> None:
    """A loss in the output, or in its place, is passed by: its own gradient is always 1."""
    torch.manual_seed(0)
    net = Judging(result)
    logits = net.head(net.body(X).tanh())
    (truth,) = torch.autograd.grad(F.cross_entropy(logits, Y), [logits])

    audit = _trained(net)

    measured = audit.measurements
    assert measured.steps[0].output_grad_norm == pytest.approx(float(truth.norm()))
    assert measured.steps[0].output_norm == pytest.approx(float(logits.detach().norm()))
    assert [one.id for one in measured.units.values() if one.feeds_output] == ["net", "net/head"]


def test_a_loss_that_is_given_by_name_is_passed_by() -> None:
    """What a named criterion is given counts as the network's output."""
    torch.manual_seed(0)
    net, criterion = nn.Linear(6, 3), nn.CrossEntropyLoss()
    logits = net(X)
    (truth,) = torch.autograd.grad(criterion(logits, Y), [logits])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with soma.audit_modules({"net": net, "loss": criterion}, optimizer) as audit:
        criterion(net(X), Y).backward()
        optimizer.step()

    assert audit.measurements.steps[0].output_grad_norm == pytest.approx(float(truth.norm()))


def test_a_loss_of_unseen_tensors_stays() -> None:
    """Where no module is looked at that the loss is made of, the loss is all there is."""
    net = Judging(_alone)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with soma.audit_modules({"net": net}, optimizer) as audit:
        _loss(net(X)).backward()
        optimizer.step()

    assert audit.measurements.steps[0].output_grad_norm == 1.0


def test_two_losses_count_what_is_made_last() -> None:
    """A loss at hidden states beside the one at the logits leaves the logits as the output."""
    torch.manual_seed(0)
    net = Judging(lambda logits, hidden, loss: loss + 0.1 * hidden.square().mean())
    logits = net.head(net.body(X).tanh())
    (truth,) = torch.autograd.grad(F.cross_entropy(logits, Y), [logits])

    steps = _trained(net).measurements.steps

    assert steps[0].output_grad_norm == pytest.approx(float(truth.norm()))


def test_a_solved_problem_with_its_loss_inside_is_healthy() -> None:
    """As the gradient at the logits goes to 0, nothing above them vanishes or explodes."""
    torch.manual_seed(0)
    audit = _trained(Judging(_of_a_dict), steps=120, rate=5.0)

    assert audit.measurements.steps[-1].loss < 1e-2  # type: ignore[operator]
    assert audit.report().is_healthy(), audit.report().pretty()

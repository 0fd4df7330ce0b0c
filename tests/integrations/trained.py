"""What the tests of the training libraries share: data, nets, and a loop by hand."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import soma
from soma.audit import Audit

X = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
Y = (X[:, :1] * X[:, 1:2]).sign().clamp(min=0).long().squeeze(1)

Batches = Iterable[tuple[Tensor, Tensor]]


class Net(nn.Module):
    """Two parts, in a healthy state."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh())
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        return self.head(self.body(x))


class DeadNet(Net):
    """One whose first activation never fires."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.constant_(self.body[0].bias, -100.0)


class CutNet(Net):
    """One whose body the loss does not reach."""

    def forward(self, x: Tensor) -> Tensor:
        """Return logits that know nothing of the body."""
        return self.head(self.body(x).detach())


def seeded(net: Callable[[], nn.Module] = Net) -> nn.Module:
    """Return a net that has the same weights each time."""
    torch.manual_seed(0)
    return net()


def batches(size: int = 16, times: int = 1) -> list[tuple[Tensor, Tensor]]:
    """Return the data in batches, in order, so many times."""
    return [one for _ in range(times) for one in zip(X.split(size), Y.split(size), strict=True)]


def by_hand(
    data: Batches,
    *,
    net: Callable[[], nn.Module] = Net,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    clip: float | None = None,
    every: int = 1,
) -> Audit:
    """Train in a plain loop under `soma.audit_modules`, a step every so many batches."""
    model = seeded(net)
    stepper = optimizer(model.parameters(), lr=0.1)
    parts = dict(model.named_children())
    with soma.audit_modules(parts, stepper, inside=True, budget=None) as audit:
        for at, (x, y) in enumerate(data, 1):
            (F.cross_entropy(model(x), y) / every).backward()
            if at % every == 0:
                if clip is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                stepper.step()
                stepper.zero_grad()
    return audit


def numbers(audit: Audit) -> dict[tuple[str, str], list[float]]:
    """Return all series of an audit by unit and name."""
    series = audit.measurements.series
    return {(id, name): one.values for id, by in series.items() for name, one in by.items()}


def norms(audit: Audit) -> list[tuple[float, float]]:
    """Return the gradient's norm before and after clipping, step by step."""
    return [(step.grad_norm, step.grad_norm_at_step) for step in audit.measurements.steps]


def flags(audit: Audit) -> dict[str, list[str]]:
    """Return what is flagged, by id."""
    return {row.filter_id: row.flags for row in audit.report().filters if row.flags}

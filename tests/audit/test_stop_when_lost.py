"""An audit ends a loop that can go nowhere, and tells of findings as they come."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import soma
from soma.errors import TrainingLost

X, Y = torch.randn(32, 4), torch.randn(32, 2)


def train(model: nn.Module, steps: int, lr: float = 1e-2, watch=None, **options: object) -> int:
    """Train under audit, with `watch(audit)` called first; return the steps taken."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    taken = 0
    with soma.audit_modules({"net": model}, optimizer, **options) as audit:
        watch(audit)
        for _ in range(steps):
            optimizer.zero_grad()
            F.mse_loss(model(X), Y).backward()
            taken += 1
            optimizer.step()
    return taken


def test_a_loop_whose_weights_are_lost_is_ended() -> None:
    """A rate that is far too high ends in NaN, and the loop ends there with the reason."""
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))

    with pytest.raises(TrainingLost, match="the optimizer used a gradient that is not finite"):
        train(model, 200, lr=1e12, watch=lambda audit: audit.stop_when_lost())


def test_a_loop_whose_paths_are_all_dead_is_ended() -> None:
    """A model behind dead units gets zero gradients for ever."""
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2, bias=False))
    model[0].bias.data.fill_(-1e6)

    with pytest.raises(TrainingLost, match="exactly zero since step 0"):
        train(model, 20, watch=lambda audit: audit.stop_when_lost())


def test_a_sound_loop_goes_on() -> None:
    """Nothing is raised, and no hook is left."""
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))

    assert train(model, 20, watch=lambda audit: audit.stop_when_lost()) == 20
    assert not any(part._forward_hooks for part in model.modules())


def test_findings_are_told_once_while_training() -> None:
    """A callback gets each new finding once."""
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    model[0].bias.data[:4] = -1e6
    told: list[str] = []
    train(
        model, 30, inside=True, channels=True,
        watch=lambda audit: audit.on_finding(lambda finding: told.append(finding.name)),
    )  # fmt: skip

    assert told.count("DEAD_CHANNELS") == 1


def test_a_loop_can_end_in_its_own_way() -> None:
    """What is given is called with the reason, in place of the error."""
    reasons: list[str] = []
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    taken = train(model, 60, lr=1e12, watch=lambda audit: audit.stop_when_lost(reasons.append))

    assert taken == 60
    assert "a gradient that is not finite" in reasons[0]

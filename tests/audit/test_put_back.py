"""Weights that somebody else writes to between the steps."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import soma
from tests.audit.loops import X, plain_step

Write = Callable[[nn.Module, dict[str, torch.Tensor]], None]


def _load(net: nn.Module, first: dict[str, torch.Tensor]) -> None:
    net[0].load_state_dict(first)


def _copy(net: nn.Module, first: dict[str, torch.Tensor]) -> None:
    net[0].weight.data.copy_(first["weight"])
    net[0].bias.data = first["bias"].clone()


def _nothing(net: nn.Module, first: dict[str, torch.Tensor]) -> None: ...


def _half(net: nn.Module, first: dict[str, torch.Tensor]) -> None:
    net[0].weight.data.lerp_(first["weight"], 0.5)
    net[0].bias.data.lerp_(first["bias"], 0.5)


def _clamp(net: nn.Module, first: dict[str, torch.Tensor]) -> None:
    for one in net.parameters():
        one.data.clamp_(-0.3, 0.3)


def flags_of_the_first(write: Write, width: int = 8, dtype: torch.dtype = torch.float32) -> list:
    """Train two layers, write to the first after each step, and return its flags."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2)).to(dtype)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    first = {name: one.clone() for name, one in net[0].state_dict().items()}
    with soma.audit_modules({"net": net}, optimizer, inside=True) as audit:
        for _ in range(6):
            plain_step(net, optimizer, X.to(dtype))
            write(net, first)
    return audit.report().by_id()["net/0"].flags


@pytest.mark.parametrize("write", [_load, _copy])
@pytest.mark.parametrize("width", [8, 20_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_weights_that_are_put_back(write: Write, width: int, dtype: torch.dtype) -> None:
    """A module whose steps are undone is FROZEN, large or small and of whatever type."""
    assert "FROZEN" in flags_of_the_first(write, width, dtype)


@pytest.mark.parametrize("write", [_nothing, _half, _clamp])
@pytest.mark.parametrize("width", [8, 20_000])
def test_weights_that_are_only_held_back(write: Write, width: int) -> None:
    """One that gets anywhere is not."""
    assert "FROZEN" not in flags_of_the_first(write, width)


def test_the_finding_says_what_happens() -> None:
    """It tells weights that are put back from those that no optimizer holds."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    first = net[0].weight.detach().clone(), net[0].bias.detach().clone()
    with soma.audit_modules({"net": net}, optimizer, inside=True) as audit:
        for _ in range(6):
            plain_step(net, optimizer, X)
            net[0].weight.data, net[0].bias.data = first[0].clone(), first[1].clone()
    (finding,) = audit.report().by_id()["net/0"].findings

    assert "started from the same values again" in finding.why
    assert "load_state_dict" in finding.help


def test_weights_moved_by_hand() -> None:
    """A part that no optimizer holds is not FROZEN where the loop moves it itself."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net[1].parameters(), lr=1e-2)
    with soma.audit_modules({"net": net}, optimizer, inside=True) as audit:
        for _ in range(6):
            net.zero_grad()
            plain_step(net, optimizer, X)
            for one in net[0].parameters():
                one.data -= 1e-2 * one.grad
    assert audit.report().by_id()["net/0"].flags == []

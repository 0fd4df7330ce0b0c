"""Several modules by name: where a bad number began is told though little of a step is kept."""

import pytest
import torch
from torch import nn

import soma
from soma.health import Origin
from tests.audit.loops import X
from tests.audit.test_origin import Does

NAMES = "abcdefgh"


def bare_sqrt(x: torch.Tensor) -> torch.Tensor:
    """Give zeros, and a slope that is not finite."""
    return torch.sqrt((x - x.detach()).square())


def chain(at: int, function) -> dict[str, nn.Module]:
    """Make eight modules, with a function in one of them."""
    torch.manual_seed(0)
    made = {name: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2), nn.Tanh()) for name in NAMES}
    made[NAMES[at]] = nn.Sequential(nn.Linear(4, 4), Does(function), nn.Linear(4, 4))
    return made


def origins(modules: dict[str, nn.Module], between, loss=torch.mean) -> list[Origin]:
    """Train for two steps; return what was found."""
    optimizer = torch.optim.SGD(nn.ModuleList(modules.values()).parameters(), lr=0.01)
    with soma.audit_modules(modules, optimizer) as audit:
        for _ in range(2):
            optimizer.zero_grad()
            x = X
            for module in modules.values():
                x = between(x, module(x))
            loss(x.square()).backward()
            optimizer.step()
    assert audit.measurements.notes == []
    return audit.measurements.origins


@pytest.mark.parametrize(
    "between",
    [lambda _, after: after, lambda before, after: before + after],
    ids=["chain", "residual"],
)
@pytest.mark.parametrize("at", [0, 3, 7])
@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_the_module_is_found(between, at: int, phase: str) -> None:
    """Wherever it stands, and whether outputs go on to the next module as they are or not."""
    function = bare_sqrt if phase == "backward" else lambda x: torch.log(x * 0)
    (origin,) = origins(chain(at, function), between)
    found = (origin.step, origin.unit, origin.phase, origin.operation)
    assert found == (0, NAMES[at], phase, "sqrt" if phase == "backward" else "log")


def test_a_module_without_weights() -> None:
    """What is made in a backward through one is told of it."""
    modules: dict[str, nn.Module] = {"a": nn.Linear(4, 4), "b": Does(bare_sqrt), "c": nn.Tanh()}
    (origin,) = origins(modules, lambda _, after: after)
    assert (origin.unit, origin.phase, origin.operation) == ("b", "backward", "sqrt")


def test_in_place() -> None:
    """A module that writes to what it is given is run again without harm."""
    modules = chain(1, bare_sqrt) | {"y": nn.Linear(4, 4), "z": nn.ReLU(inplace=True)}
    (origin,) = origins(modules, lambda _, after: after)
    assert (origin.unit, origin.phase) == ("b", "backward")


def test_the_loss_behind_a_chain() -> None:
    """A loss that makes it is told, and no module."""
    (origin,) = origins(chain(0, torch.relu), lambda _, after: after, lambda x: (x * 0).log().sum())
    assert (origin.unit, origin.phase) == (None, "loss")


def test_one_inside_another() -> None:
    """A module that is also a part of another named one leaves both of them known."""
    inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    outer = nn.Sequential(nn.Linear(4, 4), inner, Does(bare_sqrt), nn.Linear(4, 4))
    (origin,) = origins({"outer": outer, "inner": inner}, lambda _, after: after)
    assert (origin.phase, origin.operation) == ("backward", "sqrt")


def test_only_the_latest_gradients_are_held() -> None:
    """Of the large gradients of eight outputs most are let go while the backward goes on."""
    modules = chain(0, torch.relu)
    held: list[bool] = []
    with soma.audit_modules(modules) as audit:
        x = X.repeat(1 << 14, 1)
        for module in modules.values():
            x = module(x)
        calls = audit._recorder.step.forwards
        modules["a"][0].weight.register_hook(
            lambda _: held.extend(bool(one.gradients) for one in calls)
        )
        x.square().mean().backward()
    assert len(held) == 8
    assert sum(held) <= 2


@pytest.mark.parametrize("at", [0, 3, 7])
def test_large_gradients(at: int) -> None:
    """What is let go on the way is not what the search needs."""
    modules = chain(at, bare_sqrt)
    optimizer = torch.optim.SGD(nn.ModuleList(modules.values()).parameters(), lr=0.01)
    with soma.audit_modules(modules, optimizer) as audit:
        x = X.repeat(1 << 14, 1)
        for module in modules.values():
            x = module(x)
        x.square().mean().backward()
        optimizer.step()
    (origin,) = audit.measurements.origins
    assert (origin.unit, origin.phase, origin.operation) == (NAMES[at], "backward", "sqrt")

"""What an audit keeps, and how often it looks: bounds that do not need a clock."""

import gc
import tracemalloc
from itertools import pairwise
from typing import ClassVar
from weakref import WeakSet

import pytest
import torch
from torch import nn

import soma
from soma.audit._scope import AuditScope, ChannelConfig, scope_of
from soma.audit._step._budget import FIRST, Budget
from tests.audit.loops import X, plain_step, values


def test_memory_grows_by_a_record_a_step() -> None:
    """Over 200 steps nothing is kept but numbers: no tensor outlives its step."""
    model = nn.Sequential(nn.Linear(4, 512), nn.ReLU(), nn.Linear(512, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = X.repeat(32, 1)
    sizes, tensors = [], []
    with soma.audit_modules({"m": model}, inside=True, budget=None) as audit:
        tracemalloc.start()
        for number in range(200):
            plain_step(model, optimizer, x)
            if number in (20, 110, 199):
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
                alive = (
                    one for one in gc.get_objects() if type(one) in (torch.Tensor, nn.Parameter)
                )
                tensors.append(sum(one.numel() for one in alive))
        tracemalloc.stop()
    assert len(audit.measurements.steps) == 200
    assert (sizes[2] - sizes[1]) / 89 < 20_000  # bytes a step, for four units
    assert tensors[2] <= tensors[0]


class Saved:
    """What autograd's graph holds of a forward, as long as somebody holds the graph."""

    alive: ClassVar[WeakSet["Saved"]] = WeakSet()

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach()
        self.alive.add(self)


@pytest.mark.parametrize(("trains", "kept"), [(False, 2), (True, 65)])
def test_forwards_without_a_backward_do_not_pile_up(trains: bool, kept: int) -> None:
    """Whoever evaluates and forgets `no_grad` pays for a few forwards, and not for all."""
    layers = {"a": nn.Linear(4, 8), "b": nn.Sequential(nn.Linear(8, 8), nn.ReLU())}
    model = nn.Sequential(*layers.values()).train(trains)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with torch.autograd.graph.saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        output = model(X)
        each = len(Saved.alive)
        del output
        assert not Saved.alive
        with soma.audit_modules(layers, optimizer, inside=True):
            for _ in range(90):
                model(X)
            assert len(Saved.alive) <= each * kept


@pytest.mark.parametrize(("cost", "every"), [(0.01, 1), (0.05, 1), (0.2, 4), (1.0, 20)])
def test_how_often_steps_are_whole(cost: float, every: int) -> None:
    """After the first steps one in so many is whole that the rest stays in the budget."""
    budget = Budget(0.05)
    whole = []
    for step in range(400):
        whole += [step] * budget.is_whole(step)
        budget.note(step, cost, 1.0 + cost)
    gaps = {after - before for before, after in pairwise(whole) if before > 200}
    assert budget.every == every
    assert whole[:FIRST] == list(range(FIRST))
    assert gaps == {every}


def test_whole_steps_thin_out_slowly() -> None:
    """Where one step in thousands may be whole, a short run still has some after the first."""
    budget = Budget(1e-6)
    whole = []
    for step in range(400):
        whole += [step] * budget.is_whole(step)
        budget.note(step, 1.0, 2.0)
    assert budget.every > 400
    assert whole[FIRST:] == [
        70,
        78,
        87,
        97,
        109,
        122,
        137,
        154,
        173,
        194,
        218,
        245,
        275,
        309,
        347,
        390,
    ]


def test_no_budget_measures_all() -> None:
    """None is no limit; nothing is no budget."""
    budget = Budget(None)
    for step in range(200):
        budget.note(step, 1.0, 1.0)
    assert budget.every == 1
    with pytest.raises(ValueError, match="above 0"):
        Budget(0)


def test_steps_that_are_not_whole() -> None:
    """They have gradient norms, and a NaN in them is noticed and followed."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with soma.audit_modules({"m": model}, budget=1e-6) as audit:
        for _ in range(FIRST + 3):
            plain_step(model, optimizer, X)
        plain_step(model, optimizer, X * torch.nan)
    assert [one.whole for one in audit.measurements.steps[-4:]] == [False] * 4
    assert len(values(audit, "m", "param_grad_norm")) == FIRST + 4
    assert len(values(audit, "m", "act_norm")) == FIRST
    assert [one.phase for one in audit.measurements.origins] == ["data"]


@pytest.mark.parametrize(
    ("inside", "taken"),
    [
        (True, ["a", "a.b", "a.b.c"]),
        (1, ["a"]),
        (2, ["a", "a.b"]),
        (["a.*"], ["a.b", "a.b.c"]),
        ({"n": ["a"]}, ["a"]),
        (AuditScope(depth=2, without=("a",)), ["a.b"]),
    ],
)
def test_scopes(inside: object, taken: list[str]) -> None:
    """A scope is everything, a depth, patterns, one of these by node, or all of it together."""
    scope = scope_of(inside, "n", None)
    assert [path for path in ("a", "a.b", "a.b.c") if scope.takes(path)] == taken


@pytest.mark.parametrize("inside", [False, 0, [], {"other": True}])
def test_no_scope(inside: object) -> None:
    """Nothing inside is watched."""
    assert scope_of(inside, "n", None) is None


@pytest.mark.parametrize("inside", [1.5, [1], object()])
def test_wrong_scopes(inside: object) -> None:
    """An error says what is wanted."""
    with pytest.raises(TypeError, match="patterns"):
        scope_of(inside, "n", None)


def test_channel_axes() -> None:
    """Axis 1 of four, else the last; or as said, where there is such an axis."""
    assert [ChannelConfig().axis_of(size) for size in range(5)] == [None, None, 1, 2, 1]
    assert ChannelConfig(channel_dim=-1).axis_of(4) == 3
    assert ChannelConfig(channel_dim=2).axis_of(2) is None
    with pytest.raises(ValueError, match="snapshot_every"):
        ChannelConfig(snapshot_every=0)


def test_steps_that_are_not_whole_cost_too() -> None:
    """What they take of the share is missing for whole steps, which become rarer."""
    budget = Budget(0.05)
    for step in range(200):
        whole = budget.is_whole(step)
        budget.note(step, 0.5 if whole else 0.03, 1.5 if whole else 1.03)
    assert budget.every == 24  # (0.5 - 0.03) / (0.05 - 0.03)


def test_what_a_step_takes_longer_counts() -> None:
    """Whole steps that are slower than the audit's own time says are as rare as they must be."""
    budget = Budget(0.05)
    for step in range(200):
        whole = budget.is_whole(step)
        budget.note(step, 0.1 if whole else 0.0, 1.2 if whole else 1.0)
    assert budget.every == 4  # 0.2 / 0.05


@pytest.mark.parametrize("share", [0, -1, float("nan"), "5 %"])
def test_a_budget_is_a_share(share) -> None:
    """What is no number above 0 is told, NaN among it."""
    with pytest.raises(ValueError, match=r"`budget` is .*; a share of the time above 0"):
        Budget(share)

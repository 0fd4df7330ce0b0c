"""Optimizers and gradient scalers of all kinds (catalogue 13-20, 48)."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch import nn

import soma
from soma.errors import SomaWarning
from tests.audit.loops import X, laws, plain_step, values


def one_layer() -> nn.Module:
    return nn.Linear(4, 2)


def gradient_norm(model: nn.Module) -> float:
    return float(torch.cat([one.grad.reshape(-1) for one in model.parameters()]).norm())


@pytest.mark.parametrize("fused", [False, True])
def test_scaled_gradients(*, fused: bool) -> None:
    """Row 13: under a gradient scaler all numbers are those without one."""

    def optimizer(parameters, lr):
        return torch.optim.Adam(parameters, lr=lr, fused=fused)

    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()

    scaled = laws(one_layer, optimizer=optimizer, step=step)
    bare = laws(one_layer, optimizer=optimizer)

    for name in ("param_grad_norm", "param_grad_norm_at_step", "out_grad_norm", "out_grad_max"):
        assert values(scaled, "m", name) == pytest.approx(values(bare, "m", name), rel=1e-4)


@pytest.mark.parametrize("fused", [False, True])
def test_skipped_steps(*, fused: bool) -> None:
    """Row 14: a step that the scaler leaves out is recorded as skipped, not missing."""

    def optimizer(parameters, lr):
        return torch.optim.Adam(parameters, lr=lr, fused=fused)

    def run():
        scaler, number = torch.amp.GradScaler("cpu", init_scale=4.0), iter(range(9))

        def step(model, optimizer, x):
            optimizer.zero_grad()
            factor = math.inf if next(number) % 3 == 1 else 1.0
            scaler.scale(model(x).square().mean() * factor).backward()
            scaler.step(optimizer)
            scaler.update()

        return step

    model = one_layer()
    stepper, step = optimizer(model.parameters(), 0.1), run()
    with soma.audit_modules({"m": model}) as audit:
        for _ in range(3):
            step(model, stepper, X)
    assert [one.skipped for one in audit.measurements.steps] == [False, True, False]


def test_accumulation() -> None:
    """Row 15: four backwards and one step are one step, with the norm of the sum."""
    seen = []

    def step(model, optimizer, x):
        optimizer.zero_grad()
        for part in x.split(4):
            model(part).square().mean().backward()
        seen.append(gradient_norm(model))
        optimizer.step()

    audit = laws(one_layer, step=step)

    assert len(audit.measurements.steps) == 3
    assert values(audit, "m", "param_grad_norm") == pytest.approx(seen[3:], rel=1e-5)
    assert values(audit, "m", "calls") == [4.0] * 3


def test_clipping() -> None:
    """Row 16: the norm as backward left it, and the norm that the optimizer finds."""
    seen = []

    def step(model, optimizer, x):
        optimizer.zero_grad()
        model(x * 100).square().mean().backward()
        seen.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
        optimizer.step()

    audit = laws(one_layer, step=step)

    assert values(audit, "m", "param_grad_norm") == pytest.approx(seen[3:], rel=1e-5)
    assert values(audit, "m", "param_grad_norm_at_step") == pytest.approx([0.5] * 3, rel=1e-4)


def test_updates_are_measured() -> None:
    """Row 17: the update is what the weights have moved, whatever the optimizer did inside."""
    moved = []

    def step(model, optimizer, x):
        before = [one.detach().clone() for one in model.parameters()]

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        after = zip(model.parameters(), before, strict=True)
        moved.append(
            float(torch.cat([(new - old).detach().reshape(-1) for new, old in after]).norm())
        )

    audit = laws(one_layer, step=step, optimizer=torch.optim.LBFGS)

    assert len(audit.measurements.steps) == 3
    assert values(audit, "m", "update_norm") == pytest.approx(moved[3:], rel=1e-5)


def test_a_step_that_raises() -> None:
    """Row 18: a step that fails leaves nothing behind, and the next one is measured."""

    class Failing(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            type(self).calls += 1
            if type(self).calls % 3 == 2:
                raise ArithmeticError("not today")
            return super().step(closure)

    def step(model, optimizer, x):
        try:
            plain_step(model, optimizer, x)
        except ArithmeticError:
            optimizer.step()

    audit = laws(one_layer, step=step, optimizer=Failing)

    assert len(audit.measurements.steps) == 3
    assert all(values(audit, "m", "moved"))


def test_an_optimizer_in_the_backward() -> None:
    """Row 19: gradients that a hook uses up and clears are measured before it does."""

    def run(*, watched: bool):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        steppers = {one: torch.optim.SGD([one], lr=0.1) for one in model.parameters()}

        def use_up(parameter):
            steppers[parameter].step()
            steppers[parameter].zero_grad()

        for one in model.parameters():
            one.register_post_accumulate_grad_hook(use_up)
        with soma.audit_modules({"m": model} if watched else {}, inside=True) as audit:
            for _ in range(3):
                model(X).square().mean().backward()
        return model, audit

    (bare, _), (model, audit) = run(watched=False), run(watched=True)

    assert len(audit.measurements.steps) == 3
    assert all(one > 0 for one in values(audit, "m/0", "param_grad_norm"))
    assert values(audit, "m", "moved") == [1.0] * 3
    assert all(map(torch.equal, bare.parameters(), model.parameters()))


def test_a_shared_weight() -> None:
    """Row 20: a weight in two modules is counted once in what they are both part of."""

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.two.weight = self.one.weight

        def forward(self, x):
            return self.two(self.one(x))

    audit = laws(Tied)

    norms = [values(audit, unit, "param_norm")[0] for unit in ("m", "m/one", "m/two")]
    assert norms[0] == norms[1] == norms[2]
    assert audit.measurements.units["m"].parameters == 16


def test_two_optimizers_after_one_backward() -> None:
    """One backward and two optimizers are one step, in which both have moved weights."""
    encoder, head = nn.Linear(4, 4), nn.Linear(4, 2)
    steppers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (encoder, head)]
    with soma.audit_modules({"encoder": encoder, "head": head}) as audit:
        for _ in range(3):
            for one in steppers:
                one.zero_grad()
            head(encoder(X)).square().mean().backward()
            for one in steppers:
                one.step()
    assert len(audit.measurements.steps) == 3
    for unit in ("encoder", "head"):
        assert values(audit, unit, "moved") == [1.0] * 3


def test_a_subclass_that_steps_its_parent() -> None:
    """Hooks that torch calls twice, one inside the other, make one step."""

    class Own(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)  # patches the parent's step too
    audit = laws(one_layer, optimizer=Own)

    assert len(audit.measurements.steps) == 3
    assert all(one > 0 for one in values(audit, "m", "update_norm"))


def test_stale_gradients() -> None:
    """Row 48: gradients that nobody has cleared are told apart from new ones."""

    def step(model, optimizer, x):
        model(x).square().mean().backward()
        optimizer.step()

    audit = laws(one_layer, step=step)

    assert [one.stale for one in audit.measurements.steps] == [False, True, True]


@pytest.mark.parametrize("set_to_none", [True, False])
def test_cleared_gradients_are_not_stale(*, set_to_none: bool) -> None:
    """Row 48: it does not matter how they are cleared."""

    def step(model, optimizer, x):
        optimizer.zero_grad(set_to_none=set_to_none)
        model(x).square().mean().backward()
        optimizer.step()

    audit = laws(one_layer, step=step)

    assert not any(one.stale for one in audit.measurements.steps)


def test_a_gradient_of_an_earlier_step_does_not_count() -> None:
    """Row 48: a branch not used in a step has no gradient in it, whatever lies in `.grad`."""

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.turn = nn.Linear(4, 2), nn.Linear(4, 2), 0

        def forward(self, x):
            self.turn += 1
            return (self.one if self.turn % 2 else self.two)(x)

    def step(model, optimizer, x):
        model(x).square().mean().backward()
        optimizer.step()

    audit = laws(Branches, step=step)

    assert values(audit, "m/one", "grads") == [1.0, 0.0, 1.0]


def test_gans_are_not_stale() -> None:
    """A discriminator's gradients that the generator's backward leaves are cleared before use."""
    maker, critic = nn.Linear(2, 4), nn.Linear(4, 1)
    make, judge = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (maker, critic))
    noise = torch.randn(8, 2)
    with soma.audit_modules({"maker": maker, "critic": critic}) as audit:
        for _ in range(3):
            judge.zero_grad()
            (critic(X).mean() - critic(maker(noise).detach()).mean()).backward()
            judge.step()
            make.zero_grad()
            critic(maker(noise)).mean().backward()
            make.step()
    assert len(audit.measurements.steps) == 6
    assert not any(one.stale for one in audit.measurements.steps)


def test_a_game_in_which_nothing_is_cleared() -> None:
    """Each player uses what its own last step had used, whatever the other one has added."""
    maker, critic = nn.Linear(2, 4), nn.Linear(4, 1)
    make, judge = (torch.optim.SGD(one.parameters(), lr=0.01) for one in (maker, critic))
    noise = torch.randn(8, 2)
    with soma.audit_modules({"maker": maker, "critic": critic}) as audit:
        for _ in range(5):
            (critic(X).mean() - critic(maker(noise).detach()).mean()).backward()
            judge.step()
            critic(maker(noise)).mean().backward()
            make.step()
    flags = {row.filter_id: row.flags for row in audit.report().filters}
    assert [flags[one].count("STALE_GRAD") for one in ("maker", "critic")] == [1, 1]


def _in_turns(first, second) -> None:
    for _ in range(3):
        for one in (first, second):
            one.step()


def _one_after_the_other(first, second) -> None:
    for one in (first, second):
        for _ in range(3):
            one.step()


@pytest.mark.parametrize(
    ("steps", "is_shared", "notes"),
    [(_in_turns, True, 1), (_in_turns, False, 0), (_one_after_the_other, True, 0)],
)
def test_two_optimizers_over_one_tensor(steps, *, is_shared: bool, notes: int) -> None:
    """Row 20: it is said once, of two that step in turns; a second stage may hold the same."""
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizers = [
        torch.optim.SGD(net.parameters() if is_shared else net[0].parameters(), lr=0.1),
        torch.optim.Adam(net[1].parameters()),
    ]
    net(X).square().mean().backward()
    told = pytest.warns(SomaWarning, match="Adam and SGD.*`m/1`") if notes else nullcontext()
    with told, soma.audit_modules({"m": net}, optimizers, inside=True) as audit:
        steps(*optimizers)
    assert len([one for one in audit.measurements.notes if "two optimizers" in one]) == notes

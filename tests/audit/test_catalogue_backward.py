"""Backwards: repeated, partial, nested, failing (catalogue 9, 10, 24-27, 34-37, 52)."""

import threading

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.utils.checkpoint import checkpoint

import soma
from soma.audit import AuditScope
from tests.audit.loops import X, hook_tables, laws, plain_step, true_gradient, values


class Checkpointed(nn.Module):
    """Its middle runs again in the backward."""

    def __init__(self, *, use_reentrant):
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.middle = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.head = nn.Linear(4, 2)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        stem = self.stem(x)
        middle = checkpoint(self.middle, stem, use_reentrant=self.use_reentrant)
        return self.head(middle)


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("path", ["stem", "middle", "middle.0", "middle.1", "middle.2", "head"])
def test_checkpoints(path: str, *, use_reentrant: bool) -> None:
    """Rows 9, 10: what runs again in the backward counts once."""

    class Same(Checkpointed):
        def forward(self, x):
            return self.head(self.middle(self.stem(x)))

    audit = laws(lambda: Checkpointed(use_reentrant=use_reentrant))

    truth = true_gradient(lambda: Same(use_reentrant=use_reentrant), path)
    assert values(audit, f"m/{path}", "calls") == [1.0] * 3
    assert values(audit, f"m/{path}", "out_grad_norm")[0] == pytest.approx(truth, rel=1e-5)


def test_a_gradient_penalty() -> None:
    """Row 24: a gradient taken on the way is not the loss gradient, and no graph is kept."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        x = x.clone().requires_grad_()
        output = model(x)
        (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        (output.square().mean() + 0.0 * slope.square().sum()).backward()
        optimizer.step()

    def make():
        return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))

    audit = laws(make, step=step)

    assert values(audit, "m/0", "out_grad_norm")[0] == pytest.approx(
        true_gradient(make, "0"), rel=1e-5
    )


def test_backward_twice() -> None:
    """Row 25: a second backward through the same graph belongs to the same step."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()

    def make():
        return nn.Linear(4, 2)

    audit = laws(make, step=step)

    truth = true_gradient(make, "") * 2**0.5
    assert len(audit.measurements.steps) == 3
    assert values(audit, "m", "out_grad_norm")[0] == pytest.approx(truth, rel=1e-5)


def test_function_transforms() -> None:
    """Row 26: `grad` and `vmap` over an audited module work, and are not part of the step."""

    def step(model, optimizer, x):
        weights = {name: one.detach() for name, one in model.named_parameters()}

        def loss(weights, row):
            return functional_call(model, weights, (row,)).square().mean()

        vmap(grad(loss), in_dims=(None, 0))(weights, x)
        plain_step(model, optimizer, x)

    audit = laws(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), step=step)

    assert values(audit, "m", "calls") == [1.0] * 3


def test_functional_call_with_other_weights() -> None:
    """Row 27: with other tensors in their place, the module's own weights get no gradient."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        weights = {name: one * 2 for name, one in model.named_parameters() if "1" in name}
        kept = {name: one.detach() for name, one in model.named_parameters() if "0" in name}
        functional_call(model, weights | kept, (x,)).square().mean().backward()
        optimizer.step()

    audit = laws(lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), step=step)

    assert values(audit, "m/0", "param_grad_norm") == []
    assert values(audit, "m/1", "param_grad_norm")[0] > 0


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_validation_inside(off) -> None:
    """Row 34: forwards without gradients, also between forward and backward, are not measured."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        output = model(x)
        with off():
            model(x * 1e4)
        output.square().mean().backward()
        optimizer.step()
        with off():
            model(x * 1e4)

    audit = laws(lambda: nn.Linear(4, 2), step=step)

    assert len(audit.measurements.steps) == 3
    assert max(values(audit, "m", "act_max")) < 100


def test_a_forward_that_raises() -> None:
    """Row 35: the user's error comes through, no hook stays, and steps before it are kept."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = hook_tables(model, optimizer)
    with soma.audit_modules({"m": model}, inside=True) as audit:
        plain_step(model, optimizer, X)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(X[:, :3])
    assert hook_tables(model, optimizer) == before
    assert len(audit.measurements.steps) == 1


def test_a_hook_of_ours_that_fails() -> None:
    """Row 36: what goes wrong in a hook is warned of once, and the unit is unobserved."""

    class Refusing(torch.Tensor):
        def detach(self):
            raise ValueError("no copies of me")

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x).as_subclass(Refusing)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        model(x).as_subclass(torch.Tensor).square().mean().backward()
        optimizer.step()

    with pytest.warns(soma.errors.SomaWarning, match="no copies of me") as warned:
        audit = laws(Odd, step=step)
    assert len(warned) == 1
    assert audit.measurements.units["m"].unobserved == "error"
    assert values(audit, "m/layer", "out_grad_norm")


def test_four_trainers_at_once() -> None:
    """Row 37: audits on several threads do not see each other."""
    audits = {}

    def train(number: int) -> None:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with soma.audit_modules({f"m{number}": model}) as audits[number]:
            for _ in range(10 + number):
                plain_step(model, optimizer, X)

    threads = [threading.Thread(target=train, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(audits[number].measurements.steps) for number in range(4)] == [10, 11, 12, 13]
    assert [list(audits[number].measurements.units) for number in range(4)] == [
        [f"m{number}"] for number in range(4)
    ]


def test_no_optimizer_at_all() -> None:
    """Row 52: without an optimizer a step ends where its gradients are cleared, or at the end."""
    model = nn.Linear(4, 2)
    with soma.audit_modules({"m": model}) as audit:
        for _ in range(3):
            model.zero_grad()
            model(X).square().mean().backward()
    assert len(audit.measurements.steps) == 3


def test_only_what_is_in_scope() -> None:
    """A scope says which submodules are watched."""
    audit = laws(
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 2))),
        inside=AuditScope(patterns=("1.*",), without=("1.1",)),
    )
    assert list(audit.measurements.units) == ["m", "m/1.0"]

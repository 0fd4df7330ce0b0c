"""What the tests of the audit share: training loops, the three laws, and truth from autograd."""

from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.optim.optimizer import (
    _global_optimizer_post_hooks,
    _global_optimizer_pre_hooks,
)

import soma
from soma.audit import Audit

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(3))

Step = Callable[[nn.Module, torch.optim.Optimizer, Tensor], None]


def plain_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> None:
    """Take one step on the mean square of the first tensor that comes out."""
    optimizer.zero_grad()
    first_tensor(model(x)).abs().square().mean().backward()
    optimizer.step()


def first_tensor(output: object) -> Tensor:
    """Return the first tensor in an output."""
    if isinstance(output, Tensor):
        return output
    parts = output.values() if isinstance(output, dict) else output
    if hasattr(output, "__dataclass_fields__"):
        parts = vars(output).values()
    return first_tensor(next(iter(parts)))


def hook_tables(model: nn.Module, optimizer: torch.optim.Optimizer | None) -> list[object]:
    """Return the keys of every table of hooks that an audit may write to."""
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    tables: list[object] = [
        [list(getattr(module, name, None) or ()) for name in names] for module in model.modules()
    ]
    for parameter in model.parameters():
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            tables.append(list(getattr(parameter, name, None) or ()))
    if optimizer is not None:
        tables.append(list(optimizer._optimizer_step_pre_hooks))
        tables.append(list(optimizer._optimizer_step_post_hooks))
    return [*tables, list(_global_optimizer_pre_hooks), list(_global_optimizer_post_hooks)]


def laws(
    make: Callable[[], nn.Module],
    *,
    x: Tensor = X,
    step: Step = plain_step,
    steps: int = 3,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    **audited: object,
) -> Audit:
    """Train twice, watched and unwatched; hold the three laws; return the audit.

    No exception of ours, weights and random numbers bit for bit the same, no hook left.
    """
    audited = {"inside": True, "budget": None} | audited
    ends = []
    for watched in (False, True):
        torch.manual_seed(0)
        model = make()
        moving = [one for one in model.parameters() if one.requires_grad]
        stepper = optimizer(moving, lr=0.05)
        before = hook_tables(model, stepper)
        with soma.audit_modules({"m": model}, **audited) if watched else nullcontext() as audit:
            for _ in range(steps):
                step(model, stepper, x)
        assert hook_tables(model, stepper) == before
        ends.append([torch.get_rng_state(), *(one.detach() for one in model.parameters())])
    for mine, theirs in zip(*ends, strict=True):
        assert torch.equal(torch.nan_to_num(mine), torch.nan_to_num(theirs))
    assert audit is not None
    return audit


def true_gradient(make: Callable[[], nn.Module], path: str, *, x: Tensor = X) -> float:
    """Return the norm of the first loss gradient at a submodule's output, by autograd alone."""
    torch.manual_seed(0)
    model = deepcopy(make())
    seen: list[Tensor] = []
    module = model.get_submodule(path)
    # In-place operations after the module change what it has returned: keep a value of its own.
    handle = module.register_forward_hook(lambda _m, _i, out: _kept(out, seen))
    loss = first_tensor(model(x)).abs().square().mean()
    handle.remove()
    (gradient,) = torch.autograd.grad(loss, seen[:1])
    return float(gradient.double().norm())


def _kept(output: Tensor, seen: list[Tensor]) -> Tensor:
    seen.append(output)
    return output.clone() if isinstance(output, Tensor) else output


def values(audit: Audit, unit: str, name: str) -> list[float]:
    """Return one number of a unit over the steps."""
    by_name = audit.measurements.series.get(unit, {})
    return by_name[name].values if name in by_name else []

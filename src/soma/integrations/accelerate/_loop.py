"""`audit_accelerated`: an audit of a hand-written loop under Accelerate."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator
from torch import nn

from soma.audit import Audit, AuditScope, ChannelConfig, audit_modules
from soma.errors import InvalidInput
from soma.health import Thresholds
from soma.integrations._parts import parts_of
from soma.tracking import Run


@contextmanager
def audit_accelerated(
    accelerator: Accelerator,
    modules: nn.Module | Mapping[str, nn.Module] | None = None,
    *,
    thresholds: "Thresholds | Mapping[str, float] | None" = None,
    inside: "bool | int | str | Sequence[str] | AuditScope | Mapping[str, Any]" = False,
    channels: "bool | ChannelConfig" = False,
    budget: float | None = 0.05,
    run: Run | None = None,
) -> Iterator[Audit]:
    """Watch what an `Accelerator` has prepared while it is trained inside a `with`.

    >>> import torch
    >>> from accelerate import Accelerator
    >>> accelerator = Accelerator(cpu=True)
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> model, optimizer = accelerator.prepare(model, optimizer)
    >>> with audit_accelerated(accelerator, model) as audit:
    ...     for _ in range(3):
    ...         accelerator.backward(model(torch.randn(8, 4)).square().mean())
    ...         optimizer.step()
    ...         optimizer.zero_grad()
    >>> audit.report().n_steps
    3

    Args:
        accelerator: prepares before the `with`; its optimizers are followed.
        modules: a model, whose children are watched, or modules by name; by default the one
            model that was prepared.
        thresholds: this and all that follow are as in `soma.audit_modules`.
        run: only the main process writes to it.

    Raises:
        InvalidInput: no model was prepared, or several were and `modules` does not choose.
    """
    with audit_modules(
        _chosen(accelerator, modules),
        accelerator._optimizers,
        thresholds=thresholds,
        inside=inside,
        channels=channels,
        budget=budget,
        run=run if accelerator.is_main_process else None,
    ) as audit:
        yield audit


def _chosen(
    accelerator: Accelerator, modules: nn.Module | Mapping[str, nn.Module] | None
) -> Mapping[str, nn.Module]:
    if isinstance(modules, Mapping):
        return modules
    if modules is None:
        prepared = accelerator._models
        if len(prepared) != 1:
            raise InvalidInput(
                f"the accelerator has prepared {len(prepared)} models; one is wanted, or say what "
                "to watch: `audit_accelerated(accelerator, {'generator': g, 'critic': c})`."
            )
        modules = prepared[0]
    return parts_of(accelerator.unwrap_model(modules), None)

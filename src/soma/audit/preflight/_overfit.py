"""Can a few samples be learned by heart? What cannot do that will not learn from more."""

from time import perf_counter
from typing import Any

import torch
from torch import nn

from soma.audit.preflight._check import Check
from soma.audit.preflight._first_loss import guess_of
from soma.audit.preflight._subject import Subject, named_parameters
from soma.engine import chunks, row_count

NAME = "overfit"
ROWS = 8
STEPS = 200
SECONDS = 10.0  # for each learning rate
ENOUGH = 0.1  # of the first loss, or of that of a guess if it is smaller
RATES = (1e-2, 1e-3)


def check_overfit(subject: Subject, x: Any, y: Any) -> Check:
    """Train copies on a few samples with Adam, without dropout, until the loss is a tenth."""
    rows = min(ROWS, row_count(x) or ROWS)
    x, y = next(iter(chunks(x, rows))), next(iter(chunks(y, rows)))
    output, loss = subject.copy().outputs_and_loss(x, y)
    guess = guess_of(subject, output, y)
    goal = ENOUGH * min(float(loss.detach()), float("inf") if guess is None else guess)
    best, first, steps = float("inf"), float("nan"), 0
    for rate in RATES:
        first, last, taken = _trained(subject.copy(), x, y, rate, goal)
        steps += taken
        best = min(best, last)
        if best <= goal:
            break
    numbers = {"first": first, "best": best, "steps": float(steps), "rows": float(rows)}
    told = f"{rows} samples: the loss goes from {first:.4g} to {best:.4g} in {steps} steps of Adam"
    if best <= goal:
        return Check(name=NAME, outcome="ok", told=told, numbers=numbers)
    return Check(
        name=NAME,
        outcome="warning",
        told=told,
        help="Samples that differ in their targets may look alike to the model; or a part does not "
        "learn, see `reached`; or the loss has a floor above zero, and then this is no fault.",
        numbers=numbers,
    )


def _trained(
    subject: Subject, x: object, y: object, rate: float, goal: float
) -> tuple[float, float, int]:
    """Return the first loss, the smallest, and how many steps it took to the goal or the end."""
    parameters = [one for _, one in named_parameters(subject) if one.requires_grad]
    if not parameters:
        return float("nan"), float("inf"), 0
    optimizer = torch.optim.Adam(parameters, lr=rate)
    losses: list[float] = []
    end = perf_counter() + SECONDS
    while len(losses) < STEPS and perf_counter() < end:
        optimizer.zero_grad()
        loss = _loss(subject, x, y)
        losses.append(float(loss.detach()))
        if losses[-1] <= goal or not loss.requires_grad:
            break
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return losses[0], min(losses), len(losses)


def _loss(subject: Subject, x: object, y: object) -> torch.Tensor:
    handles = [
        part.register_forward_pre_hook(_without_dropping)
        for _, module in subject.modules()
        for part in module.modules()
        if isinstance(part, nn.modules.dropout._DropoutNd)
    ]
    try:
        return subject.outputs_and_loss(x, y)[1]
    finally:
        for handle in handles:
            handle.remove()


def _without_dropping(part: nn.Module, given: object) -> None:
    part.training = False

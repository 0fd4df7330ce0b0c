"""Is the loss at the start what a model that knows nothing would have?"""

from math import isfinite
from typing import Any

import torch
from torch import Tensor

from soma.audit.preflight._check import Check
from soma.audit.preflight._subject import Subject

NAME = "first loss"
HIGH, LOW = 2.0, 0.5  # times the loss of a guess


def check_first_loss(subject: Subject, x: object, y: object) -> Check:
    """Compare the first loss with that of outputs which are alike for every sample.

    Scores of zero are a uniform guess for every loss on logits; for values, their mean is.
    """
    output, loss = subject.outputs_and_loss(x, y)
    first = float(loss.detach())
    if not isfinite(first):
        return Check(
            name=NAME,
            outcome="warning",
            told=f"the first loss is {first}",
            help="Look for NaN in the data, log(0) or a division by zero in the loss.",
            numbers={"loss": first},
        )
    guess = guess_of(subject, output, y)
    if guess is None:
        return Check(
            name=NAME,
            outcome="skipped",
            told=f"the first loss is {first:.4g}; what a guess would give is not known here",
            numbers={"loss": first},
        )
    numbers = {"loss": first, "guess": guess}
    told = f"the first loss is {first:.4g}, a guess that knows nothing gives {guess:.4g}"
    if first > HIGH * guess:
        return Check(
            name=NAME,
            outcome="warning",
            told=told,
            help="The first outputs are too large, and the first steps will only shrink them. "
            "Scale the inputs, or start the last layer with smaller weights and a bias that fits.",
            numbers=numbers,
        )
    if first < LOW * guess:
        return Check(
            name=NAME,
            outcome="note",
            told=told,
            help="Right for weights that were trained before; otherwise see whether the targets "
            "have found their way into the inputs.",
            numbers=numbers,
        )
    return Check(name=NAME, outcome="ok", told=told, numbers=numbers)


def guess_of(subject: Subject, output: object, y: object) -> float | None:
    """Return the loss of the best answer that is the same for every sample; None: unknown."""
    losses = [loss for made in _guesses(output, y) if (loss := _loss_of(subject, made, y))]
    return min(losses, default=None)


def _guesses(output: Any, y: Any) -> list[object]:
    """Return outputs that are the same for every sample."""
    if isinstance(output, dict):
        return (
            [{leaf: torch.zeros_like(one) for leaf, one in output.items()}]
            if all(isinstance(one, Tensor) for one in output.values())
            else []
        )
    if not isinstance(output, Tensor):
        return []
    guesses: list[object] = [torch.zeros_like(output)]
    targets = torch.as_tensor(y) if hasattr(y, "shape") else y
    if (
        isinstance(targets, Tensor)
        and targets.is_floating_point()
        and targets.shape == output.shape
    ):
        mean = targets.to(output).mean(0, keepdim=True)
        guesses.append(mean.expand_as(output))
    return guesses


def _loss_of(subject: Subject, output: object, y: object) -> float | None:
    """Return a loss, or None where it is of no use to compare with."""
    try:
        found = float(subject.loss_of(output, y).detach())
    except (RuntimeError, TypeError, ValueError, IndexError):  # a loss with wishes of its own
        return None
    return found if isfinite(found) and found > 0 else None

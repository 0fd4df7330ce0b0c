"""Does the loss reach every parameter that is meant to train?"""

from soma.audit.preflight._check import Check
from soma.audit.preflight._subject import Subject, named_parameters
from soma.errors import listing

NAME = "reached"


def check_reached(subject: Subject, x: object, y: object) -> Check:
    """Run one backward, and look which trainable parameters have no gradient after it."""
    _, loss = subject.outputs_and_loss(x, y)
    wanted = {name: one for name, one in named_parameters(subject) if one.requires_grad}
    if not wanted:
        return Check(
            name=NAME,
            outcome="warning",
            told="no parameter asks for a gradient, so nothing trains",
            help="Set `requires_grad_(True)` on the parameters that shall learn.",
        )
    if not loss.requires_grad:
        return Check(
            name=NAME,
            outcome="warning",
            told=f"the loss hangs on none of the {len(wanted)} trainable parameters",
            help="Look for `.detach()`, `.item()`, NumPy or `torch.no_grad()` on the way to it.",
        )
    loss.backward()  # type: ignore[no-untyped-call]
    missed = [name for name, one in wanted.items() if one.grad is None]
    idle = [name for name, one in wanted.items() if one.grad is not None and not one.grad.any()]
    numbers = {
        "trainable": float(len(wanted)),
        "missed": float(len(missed)),
        "zero": float(len(idle)),
    }
    if missed:
        return Check(
            name=NAME,
            outcome="warning",
            told=f"{len(missed)} of {len(wanted)} trainable parameters get no gradient: "
            f"{listing(missed)}",
            help="Use what they give in the loss, or freeze them with `requires_grad_(False)`. A "
            "`.detach()`, NumPy or `torch.no_grad()` after them cuts them off too.",
            numbers=numbers,
        )
    if idle:
        return Check(
            name=NAME,
            outcome="note",
            told=f"the gradients of {listing(idle)} are exactly zero at the start",
            help="Right for a branch that starts at zero on purpose, such as the second half of an "
            "adapter; otherwise look for a factor of zero, or a unit that never fires.",
            numbers=numbers,
        )
    return Check(
        name=NAME,
        outcome="ok",
        told=f"all {len(wanted)} trainable parameters get a gradient",
        numbers=numbers,
    )

"""NO_GRAD and UNUSED: modules that the gradient cannot reach, whatever the loss."""

from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._family import by_order, contains
from soma.health._finding import Finding
from soma.health._measurements import Unit
from soma.health._words import named, percent, several

_PART_STEPS = 8  # steps before a part of a module without any gradient is told of

EXPLANATIONS = (
    Explanation(
        flag="NO_GRAD",
        title="it is called, and its weights never get a gradient",
        measured="Which trainable parameters have a gradient when the optimizer steps. None is "
        "not zero: a gradient of zeros is VANISHING.",
        rule="The module was called, and in at least `patience` steps none of its trainable "
        "parameters ever had a gradient. Calls with gradients off count where the optimizer holds "
        "its weights; else it is a teacher or a target network. So is what no optimizer moves and "
        "somebody else does, between the steps.",
        thresholds=("patience",),
        source="https://docs.pytorch.org/docs/stable/notes/autograd.html, on what is recorded.",
        helps=(
            "look after the module for `.detach()`, `.data`, `.item()`, `no_grad`, `argmax`, "
            "rounding, or a trip through NumPy",
            "a choice that has no gradient needs a way around it: Gumbel-softmax, or the "
            "straight-through `hard + soft - soft.detach()`",
            "if it is meant, say so: `requires_grad_(False)`",
        ),
    ),
    Explanation(
        flag="UNUSED",
        title="it is never called",
        measured="Calls of each module, and gradients of its parameters.",
        rule="Never called in at least `patience` steps, with no gradient on any of its trainable "
        "parameters (a weight that others use directly counts as used).",
        thresholds=("patience",),
        source="Fedus, Zoph, Shazeer 2021, arXiv:2101.03961, for experts that no token goes to.",
        helps=(
            "call it in `forward`, or take it out",
            "experts: add a loss that balances the load, or noise in the gate",
            "under DDP such parameters also need `find_unused_parameters=True`",
        ),
    ),
)


def no_grad(facts: Facts) -> list[Finding]:
    """Find trainable modules that never got a gradient, called or not."""
    if len(facts.steps) < facts.thresholds.patience:
        return []
    cut: list[Unit] = []
    dark: list[Unit] = []
    unused: list[Unit] = []
    for unit in sorted(facts.units.values(), key=by_order):
        if not unit.trainable or unit.unobserved or not _untouched(facts, unit):
            continue
        if facts.called(unit.id):
            if not _follows(facts, unit):
                cut.append(unit)
        elif not facts.points(unit.id, "calls_unrecorded"):
            unused.append(unit)
        elif any(value > 0 for _, value in facts.points(unit.id, "optimized")):
            dark.append(unit)
    found = [_cut(facts, one, cut) for one in cut]
    found += [_dark(facts, one, dark) for one in dark]
    found += [_unused(facts, one, unused) for one in unused]
    return found + _parts(facts)


def _untouched(facts: Facts, unit: Unit) -> bool:
    """Did no trainable parameter of a unit ever have a gradient, or move as if it had one?"""
    if any(value > 0 for _, value in facts.points(unit.id, "moved")):
        return False  # somebody puts gradients into `.grad`, or steps in another way
    shares = facts.points(unit.id, "grads")
    if shares:
        return not any(value > 0 for _, value in shares)
    names = ("param_grad_norm", "out_grad_norm")
    return not any(facts.points(unit.id, name) for name in names)


def _follows(facts: Facts, unit: Unit) -> bool:
    """Is it moved by hand alone, as a teacher that follows or a target network is?"""
    away = facts.points(unit.id, "away_ever")
    moved = any(value > 0 for _, value in facts.points(unit.id, "moved"))
    return bool(away) and away[-1][1] == 1 and not moved


def _cut(facts: Facts, unit: Unit, cut: list[Unit]) -> Finding:
    steps = several(len(facts.steps), "step")
    inner = [one for one in cut if contains(unit, one)]
    later = [one for one in cut if one.order > unit.order and not contains(one, unit)]
    cause = (inner or later or [unit])[-1].id
    reached = bool(facts.points(unit.id, "out_grad_norm"))
    return Finding(
        flag="NO_GRAD",
        unit=unit.id,
        since=min(facts.steps),
        certainty="certain",
        why=f"it was called, and none of its trainable parameters had a gradient in any of {steps}"
        + (", though its output got one" if reached else "; its output got none either"),
        meaning="it stays as it was built, and nothing above it learns through it"
        if not reached
        else "it stays as it was built",
        help=f"look inside {named(unit)} for a weight used through `.data` or `.detach()`"
        if reached
        else f"look after {named(unit)} for `.detach()`, `no_grad`, `.data`, `argmax` or NumPy, "
        "and keep the tensor itself; if it is meant, say `requires_grad_(False)`",
        numbers={"steps": float(len(facts.steps))},
        cause=None if cause == unit.id else cause,
    )


def _dark(facts: Facts, unit: Unit, dark: list[Unit]) -> Finding:
    """Tell of a module that the optimizer holds, and that is called with gradients off only."""
    outer = [one.id for one in facts.family.above(unit.id) if one in dark]
    steps = several(len(facts.steps), "step")
    return Finding(
        flag="NO_GRAD",
        unit=unit.id,
        since=min(facts.steps),
        certainty="certain",
        why=f"it was called with gradients off only, in {steps}, while the optimizer holds its "
        "weights",
        meaning="it stays as it was built, and nothing above it learns through it",
        help=f"call {named(unit)} outside of `torch.no_grad()` and `inference_mode()`; if it is "
        "meant, say `requires_grad_(False)`",
        numbers={"steps": float(len(facts.steps))},
        cause=outer[-1] if outer else None,
    )


def _unused(facts: Facts, unit: Unit, unused: list[Unit]) -> Finding:
    outer = [one.id for one in facts.family.above(unit.id) if one in unused]
    return Finding(
        flag="UNUSED",
        unit=unit.id,
        since=min(facts.steps),
        certainty="certain" if len(facts.steps) > 9 else "likely",
        why=f"it was not called in any of {several(len(facts.steps), 'step')}, and its weights "
        "got no gradient",
        meaning="it learns nothing; a route to it, if there is one, is never taken",
        help=f"call {named(unit)} in `forward`, or take it out; if it is an expert, balance the "
        "load over experts with an auxiliary loss or noise in the gate",
        numbers={"steps": float(len(facts.steps))},
        cause=outer[-1] if outer else None,
    )


def _parts(facts: Facts) -> list[Finding]:
    """Find modules audited as a whole of which some parameters never got a gradient."""
    found = []
    for id in sorted(facts.family.holders):
        reached, unit = facts.points(id, "grads_ever"), facts.units[id]
        if len(reached) < _PART_STEPS or not 0 < reached[-1][1] < 1:
            continue
        missing = 1 - reached[-1][1]
        found.append(Finding(
            flag="NO_GRAD",
            unit=id,
            since=reached[0][0],
            certainty="possible",
            why=f"{percent(missing)} of its trainable parameters never had a gradient in "
            f"{several(len(reached), 'step')}",
            meaning="a part of it stays as it was built",
            help=f"audit inside {named(unit)} with `inside=True` to see which part, then look for "
            "a module that is not called, or a `.detach()` after it",
            numbers={"missing": missing, "steps": float(len(reached))},
        ))  # fmt: skip
    return found

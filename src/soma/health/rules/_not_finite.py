"""NAN and INF: the first number that is not finite, and what it spoils."""

from dataclasses import replace

from soma.draw import printable, shortened
from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._family import contains
from soma.health._finding import Finding
from soma.health._measurements import Origin, Unit, UnitId
from soma.health._words import named, ticked

_HELPS = (
    "inside `log`, `sqrt` or a division: `x.clamp_min(eps)`; for probabilities the fused forms, "
    "`F.cross_entropy` on logits, `torch.logsumexp`, `F.logsigmoid`",
    "a softmax row with everything masked: leave such rows out, or keep one position open",
    "`exp` of what has no bound: clamp it, or use `F.softplus`",
    "half precision that overflows: bfloat16, or a `GradScaler`",
    "weights that became NaN: the step before was too large; clip, or lower the learning rate",
)

EXPLANATIONS = tuple(
    Explanation(
        flag=flag,
        title=title,
        measured="The share of outputs, output gradients and parameter gradients that are not "
        "finite, on every step; at the first one the step is run again under watch to find the "
        "operation.",
        rule="The first step with such a number. An output whose only such values are -inf and "
        "whose gradient is finite is a mask; so is one with as much inf in each step, whose loss "
        "and gradients are finite, as the distance of a point to itself. And a step that a "
        "gradient scaler leaves out is no fault. No other rule looks at that step or a later one.",
        thresholds=(),
        source="Goldberg 1991, What every computer scientist should know about floating-point "
        "arithmetic; IEEE 754.",
        helps=_HELPS,
    )
    for flag, title in (
        ("NAN", "not a number"),
        ("INF", "infinite numbers"),
    )
)

_PHASES = {
    "forward": "in its output",
    "backward": "in the gradient at its output",
    "weights": "in the gradients of its weights",
}


def not_finite(facts: Facts) -> list[Finding]:
    """Find each module with numbers that are not finite, and the one where they began."""
    faults = {id: one for id in facts.units if (one := facts.fault(id)) is not None}
    origins = sorted(facts.measured.origins, key=lambda one: one.step)
    origin = origins[0] if origins else None
    if origin is not None and origin.unit in facts.units:
        faults.setdefault(origin.unit, (origin.step, origin.phase, origin.value))
    if not faults:
        return [] if origin is None else _outside(facts, origin)
    root = _root(facts, faults, origin)
    return [
        _finding(facts, facts.units[id], fault, root, origin)
        for id, fault in sorted(faults.items(), key=lambda one: one[0] != root)
    ]


def _root(
    facts: Facts, faults: dict[UnitId, tuple[int, str, str]], origin: Origin | None
) -> UnitId:
    """Return the unit where it began: the origin, else the first that backward or forward met."""
    if origin is not None and origin.unit in faults:
        return origin.unit
    start = min(step for step, _, _ in faults.values())
    first = [facts.units[id] for id, (step, _, _) in faults.items() if step == start]
    inner = [one for one in first if not any(contains(one, other) for other in first)]
    for phase, toward_loss in (("forward", False), ("backward", True)):
        here = [one for one in inner if faults[one.id][1] == phase]
        if here:
            return sorted(here, key=lambda one: one.order, reverse=toward_loss)[0].id
    return inner[0].id


def _finding(
    facts: Facts,
    unit: Unit,
    fault: tuple[int, str, str],
    root: UnitId,
    origin: Origin | None,
) -> Finding:
    step, phase, value = fault
    mine = unit.id == root
    word = "NaN" if value == "nan" else "an infinite number"
    why = f"{word} {_PHASES.get(phase, 'in it')} at step {step}"
    if mine and origin is not None:
        value = origin.value if origin.unit == unit.id else value
        why += f"; {_born(origin)}"
    return Finding(
        flag=value.upper(),
        unit=unit.id,
        since=step,
        certainty="certain",
        why=why,
        meaning="from this step on every number after it is spoilt, and after the optimizer's "
        "step the weights are too"
        if mine
        else f"it comes from {ticked(root)}",
        help=_help(unit, origin if mine else None, phase),
        numbers={"step": float(step)},
        cause=None if mine else root,
    )


def _born(origin: Origin) -> str:
    place = {
        "loss": "it began in the loss",
        "data": "it was in the data",
        "weights": "it was in the weights before the step",
        "forward": "it began in the forward pass",
        "backward": "it began in the backward pass",
    }[origin.phase]
    by = f", in {ticked(origin.operation)}" if origin.operation else ""
    return f"{place}{by}{f': {shortened(printable(origin.detail), 200)}' if origin.detail else ''}"


_OPERATIONS = {
    "log": "`log(x.clamp_min(1e-12))`, or a fused loss on logits as `F.cross_entropy`",
    "sqrt": "`sqrt(x + 1e-12)`, whose gradient at 0 is finite",
    "div": "a divisor that cannot be 0, as `y.clamp_min(1e-12)`",
    "exp": "`x.clamp(max=30).exp()`, or `F.softplus(x)`",
    "softmax": "a mask that leaves at least one position of each row open",
}


def _help(unit: Unit, origin: Origin | None, phase: str) -> str:
    if origin is not None:
        if origin.phase == "data":
            return "clean the data first: `torch.isfinite(x).all()` before the loop finds the row"
        for word, instead in _OPERATIONS.items():
            if word in origin.operation.lower():
                return f"in {named(unit)} or what follows it, use {instead}"
        if origin.phase == "weights":
            return "go back to the last good weights, lower the learning rate and clip gradients"
    if phase == "backward":
        return (
            f"look at what is done to the output of {named(unit)}: a `log`, `sqrt` or division at "
            "0 has no finite gradient; add a small number inside, or use a fused loss on logits"
        )
    return (
        f"look in {named(unit)} for a `log`, a division, an `exp` or a softmax row that is masked "
        "throughout, and keep its input away from the edge with `clamp`"
    )


def _outside(facts: Facts, origin: Origin) -> list[Finding]:
    """Tell of an origin that left no trace in any module, at the node that is nearest to it."""
    nodes = [one for one in facts.family.ordered if not one.path]
    if not nodes:
        return []
    fault = (origin.step, origin.phase, origin.value)
    one = _finding(facts, nodes[-1], fault, nodes[-1].id, origin)
    return [replace(one, flag=origin.value.upper())]

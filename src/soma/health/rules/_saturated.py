"""SATURATED: an activation works where it is flat."""

from soma.health._explanation import Explanation
from soma.health._facts import Facts, middle, since
from soma.health._family import contains
from soma.health._finding import Finding
from soma.health._measurements import Unit, UnitId
from soma.health._words import named, percent
from soma.health.rules._collapse import reached

_OUTPUTS = {"sigmoid", "tanh", "hardtanh", "hardsigmoid", "softsign"}
_FIRST = 5  # steps that tell how it began
_SOLVED = 20.0  # gradient times output over loss, above which a log loss is as good as solved

EXPLANATION = Explanation(
    flag="SATURATED",
    title="its activation works where it is flat",
    measured="The share of outputs where the local slope of the activation is below 5 % of its "
    "peak; of a softmax, where the largest p(1-p) of a row is.",
    rule="The median share over the last half of the measured steps is above `saturated`. A "
    "sigmoid or tanh that is the network's output may be flat, that is what a solved problem "
    "looks like; a softmax there may be, when its loss is as good as solved. So may a gate or an "
    "attention that was not flat at first, once 95 % of the loss is gone: it has learnt to choose.",
    thresholds=("saturated",),
    source="Glorot and Bengio 2010; Rakitianskaia and Engelbrecht 2015, Measuring saturation in "
    "neural networks.",
    helps=(
        "smaller weights before it, `nn.init.xavier_normal_`, and inputs of standard deviation 1",
        "a LayerNorm or BatchNorm before it",
        "`F.cross_entropy` wants logits: no softmax before it",
        "attention scores divided by the root of the head's width",
    ),
)


def saturated(facts: Facts) -> list[Finding]:
    """Find activations most of whose outputs are where they are flat."""
    flat: dict[UnitId, float] = {}
    for unit in facts.family.ordered:
        share = facts.middle(unit.id, "saturated_frac")
        if share is None or share <= facts.thresholds.saturated or _may_be(facts, unit):
            continue
        flat[unit.id] = share
    return [_finding(facts, facts.units[id], share, flat) for id, share in flat.items()]


def _may_be(facts: Facts, unit: Unit) -> bool:
    """Is a flat activation no fault here?"""
    if facts.frozen(unit.id) or _has_learnt(facts, unit):
        return True
    if not unit.feeds_output:
        return False
    return unit.activation in _OUTPUTS or _solved(facts)


def _has_learnt(facts: Facts, unit: Unit) -> bool:
    """Did it become flat while the loss went, so that its work is done?"""
    first = middle([share for _, share in facts.points(unit.id, "saturated_frac")[:_FIRST]])
    return first is not None and first <= facts.thresholds.saturated and reached(facts)


def _solved(facts: Facts) -> bool:
    """Is the loss so small that its gradient times the output is far larger than itself?"""
    known = [(one, abs(one.loss)) for one in facts.steps.values() if one.loss is not None]
    recent = [(one, loss) for one, loss in known if one.step in facts.window]
    return bool(recent) and all(
        one.output_norm * one.output_grad_norm > _SOLVED * loss for one, loss in recent
    )


def _finding(facts: Facts, unit: Unit, share: float, flat: dict[UnitId, float]) -> Finding:
    limit = facts.thresholds.saturated
    inside = next((o for o in flat if contains(unit, facts.units[o]) and flat[o] == share), None)
    kind = unit.activation or "activation"
    softmax = "softmax" in kind
    return Finding(
        flag="SATURATED",
        unit=unit.id,
        since=since(facts.points(unit.id, "saturated_frac"), limit),
        certainty="certain" if share > (1 + limit) / 2 else "likely",
        why=f"{percent(share)} of what the {kind} gives is where its slope is below 5 % of its "
        f"peak (the line is {percent(limit)})",
        meaning="little gradient passes it, so what is above it learns slowly",
        help=(
            f"give the scores before {named(unit)} a smaller scale; if the loss is "
            "`F.cross_entropy`, give it the logits and drop the softmax"
            if softmax and unit.feeds_output
            else f"divide the scores before {named(unit)} by the root of their width, or normalise "
            "queries and keys"
            if softmax
            else f"make the weights before {named(unit)} smaller, as `nn.init.xavier_normal_` "
            "does, bring its input to standard deviation 1, or put a LayerNorm before it"
        ),
        numbers={"share": share, "limit": limit},
        cause=inside,
    )

"""LR_HIGH and LR_LOW: how far each step moves the weights."""

from statistics import fmean, median

from soma.health._explanation import Explanation
from soma.health._facts import Facts, middle
from soma.health._family import by_order, contains
from soma.health._finding import Finding
from soma.health._measurements import Unit, UnitId
from soma.health._words import named, number

_FIRST = 8  # steps that show whether a learning rate is too high
_LEAST = 2  # and how many of them there must be
_ROSE = 1.2  # times its first value, from which on a loss (in the middle of three steps) has risen
_USUAL = 1e-3  # change over weight that most recipes arrive at

_SOURCE = (
    "Karpathy 2015, cs231n notes (ratio of weights to updates, about 1e-3); You et al. 2017, "
    "arXiv:1708.03888."
)
_MEASURED = (
    "The norm of the change that each optimizer step made to a parameter over the norm of that "
    "parameter; of several parameters the median, weighted by their sizes."
)

EXPLANATIONS = (
    Explanation(
        flag="LR_HIGH",
        title="its steps are too large",
        measured=_MEASURED,
        rule="The median over the first 8 steps is above `lr_high`, and the loss has not fallen "
        "by `lr_high_fall` of what it was at the first step. Where the loss has not risen by a "
        "fifth in any three steps either, all modules have to be above: some that begin small "
        "move by much of their size, and a loss that is mostly noise hardly falls. Where the loss "
        "is unknown, or parts train in turns as in a GAN so that it says nothing, the line is "
        "`lr_high_blind`. "
        "Weights that start at 0 are left out.",
        thresholds=("lr_high", "lr_high_fall", "lr_high_blind"),
        source=_SOURCE,
        helps=(
            "a learning rate 10 to 100 times smaller",
            "a warm-up over the first few hundred steps",
            "`g.clip_gradients(1.0)`",
        ),
    ),
    Explanation(
        flag="LR_LOW",
        title="its steps are too small to matter",
        measured=f"{_MEASURED} And the strength of its gradient: its norm times the norm of the "
        "weights, as backward left it, before clipping.",
        rule="The median over the last half of the measured steps is below `lr_low`, at a module "
        "whose gradient is at least `lr_low_gradient` of the median over modules; and either the "
        "others move a thousand times as much, or none moves while the loss is far from solved.",
        thresholds=("lr_low", "lr_low_gradient"),
        source=_SOURCE,
        helps=(
            "a learning rate that brings the ratio near 1e-3",
            "look at the parameter groups and the scheduler: a group may have a rate of its own",
            "with an adaptive optimizer and tiny losses: a smaller `eps`",
        ),
    ),
)


def lr_high(facts: Facts) -> list[Finding]:
    """Find modules whose first steps were too large, unless the loss fell all the same."""
    if facts.loss_fell:
        return []
    limits = facts.thresholds
    limit = limits.lr_high if facts.loss_fell is False else limits.lr_high_blind
    ratios: dict[UnitId, float] = {}
    for unit in _judged(facts):
        norms = facts.points(unit.id, "param_norm")
        first = [value for _, value in facts.points(unit.id, "update_ratio")[:_FIRST]]
        ratio = middle(first) if len(first) >= _LEAST else None
        if ratio is not None and ratio > limit and (not norms or norms[0][1] > 0):
            ratios[unit.id] = ratio
    if not ratios or (len(ratios) < len(_judged(facts)) and not _rose(facts)):
        return []
    told = facts.family.outward(ratios)
    heads = {id: ratios.get(id, 0.0) for id, outer in told.items() if outer is None}
    worst = max(heads, key=lambda id: heads[id])
    return [
        _high(facts, facts.units[id], _most(facts, ratios, id), limit, outer or worst)
        for id, outer in told.items()
    ]


def _rose(facts: Facts) -> bool:
    """Did the loss rise above its first value? Yes where it is not known."""
    losses = facts.losses
    if facts.loss_fell is None:
        return True
    middles = [median(losses[at : at + 3]) for at in range(1, len(losses) - 2)]
    return max(middles, default=losses[-1]) - losses[0] >= (_ROSE - 1) * abs(losses[0])


def _most(facts: Facts, ratios: dict[UnitId, float], id: UnitId) -> float:
    """Return the ratio of a module, or the largest inside it."""
    unit = facts.units[id]
    inside = [ratio for other, ratio in ratios.items() if contains(unit, facts.units[other])]
    return max(inside) if inside else ratios[id]


def _judged(facts: Facts) -> list[Unit]:
    return sorted((facts.units[id] for id in facts.family.holders), key=by_order)


def _high(facts: Facts, unit: Unit, ratio: float, limit: float, head: UnitId) -> Finding:
    loss = (
        ", and the loss did not fall"
        if facts.loss_fell is False
        else "; the loss does not tell whether that helps"
    )
    return Finding(
        flag="LR_HIGH",
        unit=unit.id,
        since=facts.points(unit.id, "update_ratio")[0][0],
        certainty="likely" if facts.loss_fell is False else "possible",
        why=f"a step changes its weights by {number(ratio)} of their size (median of the first "
        f"{_FIRST} steps, the line is {number(limit)}){loss}",
        meaning="each step throws away what the one before learnt",
        help=f"divide the learning rate of {named(unit)} by about {number(ratio / _USUAL)}, "
        "which brings the ratio near 0.001, and warm it up",
        numbers={"ratio": ratio, "limit": limit},
        cause=None if unit.id == head else head,
    )


def lr_low(facts: Facts) -> list[Finding]:
    """Find modules that hardly move, though their gradient says that they should."""
    limits = facts.thresholds
    strengths = {
        unit.id: value
        for unit in _judged(facts)
        if (value := facts.middle(unit.id, "grad_strength"))
    }
    if not strengths:
        return []
    usual = median(strengths.values())
    ratios = {id: _moves(facts, id) for id in strengths}
    low = {
        id: ratio
        for id, ratio in ratios.items()
        if 0 < ratio < limits.lr_low and strengths[id] >= limits.lr_low_gradient * usual
    }
    others = middle([ratio for id, ratio in ratios.items() if id not in low and ratio > 0])
    alone = others is not None and max(low.values(), default=0.0) < _USUAL * others
    if not low or not (alone or facts.unsolved):
        return []
    beside = others if alone else None
    return [
        _low(facts, facts.units[id], _most(facts, low, id), beside, outer)
        for id, outer in facts.family.outward(low).items()
    ]


def _moves(facts: Facts, id: UnitId) -> float:
    """Return the change of a unit's weights over the weights, of a part of them if that is more."""
    norm, change = facts.middle(id, "param_norm"), facts.middle(id, "update_norm")
    overall = change / norm if norm and change else 0.0
    found = max(facts.middle(id, "update_ratio") or 0.0, overall)
    if found == 0 and (recent := facts.recent(id, "update_ratio")):
        return fmean(recent)  # most steps were rounded away, or are others' turns
    return found


def _low(
    facts: Facts, unit: Unit, ratio: float, others: float | None, cause: UnitId | None
) -> Finding:
    limit = facts.thresholds.lr_low
    beside = "" if others is None else f", while others change by {number(others)}"
    return Finding(
        flag="LR_LOW",
        unit=unit.id,
        since=facts.points(unit.id, "update_ratio")[0][0],
        certainty="likely" if others is not None else "possible",
        why=f"a step changes its weights by {number(ratio)} of their size{beside} (the line is "
        f"{number(limit)}), and its gradient is as strong as elsewhere",
        meaning="it would learn if it were let to; at this rate it needs about "
        f"{number(1 / ratio)} steps to change by its own size",
        help=f"multiply the learning rate of {named(unit)} by about {number(_USUAL / ratio)}: look "
        "at its parameter group, the scheduler, and `eps` of the optimizer",
        numbers={"ratio": ratio, "limit": limit},
        cause=cause,
    )

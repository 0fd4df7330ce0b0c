"""When a module that hardly any gradient arrives at is well: it opens, is done, or is apart."""

from statistics import median

from soma.health._facts import Facts, Points, middle
from soma.health._family import contains
from soma.health._measurements import Unit
from soma.health.rules._collapse import reached

_LET = 1e-2  # times the line, from which on a branch that started at 0 is let to open
_GROWS = 2.0  # times as much arrives late in the run as early, while it does
_FEW = 8  # steps that say nothing about that yet
_OPENED = 4.0  # times as much as at first, beside what passes it by, at a branch learnt open
_KEEPS_UP = 1e-2  # of how others move, at least, where a part of the output has its own unit
_TOGETHER = 5  # steps of which the median is taken, so that one step is no growth


def opens(facts: Facts, unit: Unit, ratio: float) -> bool:
    """Is it behind a factor that is learnt and began small, so that its share grows?"""
    shares, least = facts.gradients(unit.id), _LET * facts.thresholds.vanishing
    some = [value for _, value in shares if value > 0]
    if not some:
        return False
    if shares[0][1] == 0:
        early = middle(some[: max(len(some) // 4, 1)]) or 0.0
        above = max(some) >= facts.thresholds.vanishing
        return ratio >= least and (len(some) < _FEW or above or ratio >= _GROWS * early)
    beside = passed_by(facts, unit)
    if beside is None or _growth(shares)[1] < least:
        return False
    others = dict(facts.gradients(beside.id))
    grown = [(step, value / others[step]) for step, value in shares if others.get(step, 0.0) > 0]
    first, peak = _growth(grown)
    return peak >= _OPENED * first


def is_done(facts: Facts, unit: Unit) -> bool:
    """Did it get its share until the loss was as good as gone?"""
    return _growth(facts.gradients(unit.id))[1] >= facts.thresholds.vanishing and reached(facts)


def is_apart(facts: Facts, unit: Unit) -> bool:
    """Has it its share of what its own part of the output gets, and does it move as others do?

    Of two heads, or an actor and a critic, one may have a loss in thousands and the other none
    above 1. Less than a hundredth of the line is too little all the same.
    """
    if (facts.share(unit.id) or 0.0) < _LET * facts.thresholds.vanishing:
        return False
    return any(
        _is_part(facts, part) and _has_its_share(facts, unit, part) and _keeps_up(facts, unit, part)
        for part in facts.family.above(unit.id)
    )


def _is_part(facts: Facts, unit: Unit) -> bool:
    """Does a unit give a part of the network's output, and another one another part?"""
    return unit.feeds_output and any(
        other.feeds_output
        and other.id != unit.id
        and not contains(unit, other)
        and not contains(other, unit)
        for other in facts.family.ordered
    )


def _has_its_share(facts: Facts, unit: Unit, part: Unit) -> bool:
    given = dict(facts.points(part.id, "out_grad_norm"))
    shares = [
        value / given[step]
        for step, value in facts.points(unit.id, "out_grad_norm")
        if step in facts.window and value > 0 and given.get(step, 0.0) > 0
    ]
    return (middle(shares) or 0.0) >= facts.thresholds.vanishing


def _keeps_up(facts: Facts, unit: Unit, part: Unit) -> bool:
    mine, others = [], []
    for id in facts.family.holders:
        one, moves = facts.units[id], facts.middle(id, "update_ratio")
        if moves is not None and (one == unit or contains(unit, one)):
            mine.append(moves)
        elif moves is not None and not contains(part, one):
            others.append(moves)
    usual = middle(others)
    return usual is None or (middle(mine) or 0.0) >= _KEEPS_UP * usual


def _growth(shares: Points) -> tuple[float, float]:
    """Return what arrived in the first steps, and the most that did in as many later on."""
    some = [value for _, value in shares if value > 0]
    if len(some) < _FEW:
        return 1.0, 0.0
    medians = [median(some[at : at + _TOGETHER]) for at in range(len(some) - _TOGETHER + 1)]
    return medians[0], max(medians)


def passed_by(facts: Facts, unit: Unit) -> Unit | None:
    """Return the last module before one that gets enough, by another way; None: there is none.

    In a chain there is none: what grows there from nearly nothing has yet to begin to learn.
    """
    limit = facts.thresholds.vanishing
    fed = (
        one
        for one in facts.family.ordered
        if one.trainable
        and one.node == unit.node
        and one.order < unit.order
        and not contains(one, unit)
        and not contains(unit, one)
        and (facts.share(one.id) or 0.0) >= limit
    )
    return max(fed, key=lambda one: one.order, default=None)

"""When a module that hardly any gradient arrives at is well: it opens, or its work is done."""

from statistics import median

from soma.health._facts import Facts, Points, middle
from soma.health._family import contains
from soma.health._numbers import Unit
from soma.health.rules._collapse import reached

_LET = 1e-2  # times the line, from which on a branch that started at 0 is let to open
_GROWS = 2.0  # times as much arrives late in the run as early, while it does
_FEW = 8  # steps that say nothing about that yet
_OPENED = 4.0  # times as much as at first, beside what passes it by, at a branch learnt open
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

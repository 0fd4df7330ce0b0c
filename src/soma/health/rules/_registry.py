"""All rules, in the order in which they are asked, and the explanations of their flags.

A new rule is a file, two lines below and a place in `_severity.py`.
"""

from collections.abc import Callable

from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._finding import Finding
from soma.health.rules import (
    _collapse,
    _dead,
    _exploding,
    _frozen,
    _ignored,
    _leakage,
    _learning_rate,
    _no_grad,
    _not_finite,
    _saturated,
    _stale,
    _unobserved,
    _vanishing,
)

Rule = Callable[[Facts], list[Finding]]

RULES: tuple[Rule, ...] = (
    _not_finite.not_finite,
    _exploding.exploding,
    _no_grad.no_grad,
    _dead.dead,
    _vanishing.vanishing,
    _frozen.frozen,
    _stale.stale,
    _learning_rate.lr_high,
    _collapse.collapse,
    _leakage.leakage,
    _saturated.saturated,
    _ignored.ignored,
    _learning_rate.lr_low,
    _unobserved.unobserved,
)

EXPLANATIONS: tuple[Explanation, ...] = (
    *_not_finite.EXPLANATIONS,
    _exploding.EXPLANATION,
    *_no_grad.EXPLANATIONS,
    *_dead.EXPLANATIONS,
    _vanishing.EXPLANATION,
    _frozen.EXPLANATION,
    _stale.EXPLANATION,
    *_learning_rate.EXPLANATIONS,
    _collapse.EXPLANATION,
    _leakage.EXPLANATION,
    _saturated.EXPLANATION,
    _ignored.EXPLANATION,
    *_unobserved.EXPLANATIONS,
)

"""EXPLODING: the loss's gradient grows without measure, over depth or over time."""

import math
from bisect import insort
from dataclasses import replace
from statistics import median

from soma.health._explanation import Explanation
from soma.health._facts import Facts, middle, since
from soma.health._finding import Finding
from soma.health._measurements import Unit
from soma.health._words import named, number, several

_FIRST = 3  # steps that tell where a run began
_ROSE = 10.0  # times the median of the steps before, where the whole run is the measure
_ABOVE = 10.0  # times the gradient there: a hard sample in a solved problem is no explosion

EXPLANATION = Explanation(
    flag="EXPLODING",
    title="the loss's gradient grows without measure",
    measured="The norm of the loss's gradient at a module's output over the norm at the "
    "network's output, less what a normalisation between them takes back; and for each node "
    "the strength of a step's gradients (norm times norm of the weights, as backward left "
    "them) over the steps before.",
    rule="The median of the first over the last half of the measured steps is above "
    "`exploding`; or a step's gradients are above `exploding_jump` times the median of all "
    "earlier steps, or above 10 times that and `exploding_run` times the median of the run; and "
    "after the first three steps above 10 times theirs.",
    thresholds=("exploding", "exploding_jump", "exploding_run"),
    source="Pascanu, Mikolov, Bengio 2013, arXiv:1211.5063; Philipp et al. 2017, arXiv:1712.05577.",
    helps=(
        "a smaller learning rate, with a warm-up",
        "`g.clip_gradients(1.0)` between backward and step",
        "smaller recurrent weights, as `nn.init.orthogonal_`",
        "a normalisation between the layers, or weights that keep the scale",
    ),
)


def exploding(facts: Facts) -> list[Finding]:
    """Find modules whose gradient is far larger than the network's, and nodes where it jumps."""
    gains = _gains(facts)
    found = (_over_depth(facts, unit, gains) for unit in facts.family.ordered)
    deep = [one for one in found if one is not None]
    nodes = [unit for unit in facts.units.values() if not unit.path]
    jumps = [one for unit in nodes if (one := _over_time(facts, unit)) is not None]
    return jumps + [_told_once(one, deep) for one in deep]


def _told_once(one: Finding, deep: list[Finding]) -> Finding:
    """The module where it is largest tells the story."""
    worst = max(deep, key=lambda other: other.numbers["ratio"])
    if one is worst:
        return one
    return replace(one, cause=worst.unit)


def _over_depth(facts: Facts, unit: Unit, gains: list[tuple[int, float]]) -> Finding | None:
    limit = facts.thresholds.exploding
    if not unit.trainable or facts.frozen(unit.id) or unit.feeds_output:
        return None
    taken_back = max([1.0, *(gain for order, gain in gains if order > unit.order)])
    points = [
        (step, value / (taken_back * output))
        for step, value in facts.points(unit.id, "out_grad_norm")
        if 0 < (output := facts.steps[step].output_grad_norm) < math.inf
    ]
    ratio = middle([value for step, value in points if step in facts.window and value > 0])
    if ratio is None or ratio <= limit:
        return None
    return Finding(
        flag="EXPLODING",
        unit=unit.id,
        since=since(points, limit),
        certainty="certain" if ratio > 10 * limit else "likely",
        why=f"the gradient at its output is {number(ratio)} times the one at the network's output "
        f"(the line is {number(limit)})",
        meaning="its steps are far too large for the learning rate of the others, and what is "
        "above it gets the same",
        help=f"make the weights after {named(unit)} smaller, as `nn.init.kaiming_normal_` or for "
        "recurrent ones `nn.init.orthogonal_` does, or put a normalisation between the layers",
        numbers={"ratio": ratio, "limit": limit},
    )


def _gains(facts: Facts) -> list[tuple[int, float]]:
    """Return the order of each normalisation, and the factor by which it scales values up."""
    found = []
    for one in facts.family.ordered:
        given = facts.family.before(one.id) if "norm" in one.class_name.lower() else None
        size = None if given is None else facts.middle(given.id, "act_mean_abs")
        if size and (after := facts.middle(one.id, "act_mean_abs")):
            found.append((one.order, after / size))
    return found


def _over_time(facts: Facts, node: Unit) -> Finding | None:
    points = _strengths(facts, node)
    if len(points) <= _FIRST:
        return None
    begun = max(value for _, value in points[:_FIRST])
    usual = median(value for _, value in points)
    limits = facts.thresholds
    earlier: list[float] = []  # sorted
    for at, (step, value) in enumerate(points):
        if earlier:
            before = earlier[len(earlier) // 2]
            # A run that converges leaves small gradients behind: its first ones are no jump.
            rose = value > _ROSE * before and value > limits.exploding_run * usual
            jumped = value > limits.exploding_jump * before or rose
            if jumped and (at < _FIRST or value > _ABOVE * begun):
                return _jump(facts, node, step, value / before, at)
        insort(earlier, value)
    return None


def _strengths(facts: Facts, node: Unit) -> list[tuple[int, float]]:
    """Return how strong a node's gradients were, in the steps that were not measured whole too.

    Gradient times weight, so that the layer with the smallest weights does not stand for all.
    """
    whole = dict(facts.points(node.id, "grad_strength"))
    found: list[tuple[int, float]] = []
    factor = 0.0
    for step, norm in facts.watched(node.id, "param_grad_norm"):
        if step in whole and norm > 0:
            factor = whole[step] / norm
        if 0 < norm * factor < math.inf:
            found.append((step, norm * factor))
    return found


def _jump(facts: Facts, node: Unit, step: int, factor: float, steps: int) -> Finding:
    return Finding(
        flag="EXPLODING",
        unit=node.id,
        since=step,
        certainty="certain",
        why=f"the gradients of step {step} are {number(factor)} times the median of the "
        f"{several(steps, 'step')} before it",
        meaning="such a step throws away what was learnt, and the next ones often end in NaN",
        help="clip the gradients, `g.clip_gradients(1.0)` between backward and step, and try a "
        f"learning rate 10 times smaller for {named(node)}",
        numbers={"factor": factor, "limit": facts.thresholds.exploding_jump},
    )

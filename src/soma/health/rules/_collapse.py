"""COLLAPSE: a representation that told samples apart does not any more."""

from math import sqrt

from soma.health._explanation import Explanation
from soma.health._facts import Facts, middle
from soma.health._family import contains
from soma.health._finding import Finding
from soma.health._measurements import ChannelSnapshot, Unit, UnitId
from soma.health._words import named, number, percent
from soma.health.rules._dead import dead_channels

_FIRST = 2  # steps that tell how it began
_LEAST = 6  # steps before one can say that it fell
_SAMPLES = 8  # an expert that gets fewer samples in a step shows no variance in it
_SHRUNK = 0.5  # of the first spread, at most, is left where a share has fallen
_REACHED = 0.05  # share of its first value that is left of a loss whose target is reached

EXPLANATION = Explanation(
    flag="COLLAPSE",
    title="it no longer tells samples apart",
    measured="The variance of a module's output over the batch over its mean square, and the "
    "largest standard deviation of any channel.",
    rule="The first falls from above `collapse_from` to below `collapse_to`; or the second to "
    "below `collapse_spread` of what it was in the first steps, unless the loss is as good as "
    "gone and the network's output still varies, as when a residual goes to zero because the "
    "target is reached. Where only the mean has moved away, nothing has collapsed. The "
    "network's own output is not judged.",
    thresholds=("collapse_from", "collapse_to", "collapse_spread"),
    source="Bowman et al. 2016, arXiv:1511.06349 (posterior collapse); Jing et al. 2022, "
    "arXiv:2110.09348.",
    helps=(
        "VAE: a smaller weight of the KL term, warmed up from 0, or free bits",
        "self-supervision: a stop-gradient or variance term, larger batches",
        "a smaller learning rate, and a normalisation before the module",
    ),
)


def collapse(facts: Facts) -> list[Finding]:
    """Find modules whose output varied at first and does not any more."""
    if len(facts.steps) < _LEAST:
        return []
    found: list[Finding] = []
    for unit in facts.family.ordered:
        whole_output = unit.feeds_output and not unit.shares_output
        if whole_output or facts.frozen(unit.id) or dead_channels(facts, unit.id):
            continue
        numbers = _share(facts, unit) or _spread(facts, unit)
        if numbers is not None:
            found.append(_finding(facts, unit, *numbers, _source(facts, unit, found)))
    return found


def _share(facts: Facts, unit: Unit) -> tuple[str, float, float, int] | None:
    """Return how the share that varies fell, if it did."""
    thin = {one.step for one in _snapshots(facts, unit) if 0 < one.samples < _SAMPLES}
    points = [one for one in facts.points(unit.id, "batch_variance_ratio") if one[0] not in thin]
    begun, now = _ends(points)
    if begun is None or now is None or begun <= facts.thresholds.collapse_from:
        return None
    if now >= facts.thresholds.collapse_to or not _shrank(facts, unit, points):
        return None
    return "share", begun, now, _fell(points, facts.thresholds.collapse_to)


def _shrank(facts: Facts, unit: Unit, points: list[tuple[int, float]]) -> bool:
    """Has the spread itself fallen? A share falls too when only the mean moves away."""
    judged = {step for step, _ in points}
    begun, now = _ends([one for one in _spreads(facts, unit.id) if one[0] in judged])
    return begun is None or now is None or now < _SHRUNK * begun


def _spread(facts: Facts, unit: Unit) -> tuple[str, float, float, int] | None:
    """Return how the largest spread of a channel fell, if it did and no target was reached."""
    seen = [one for one in _snapshots(facts, unit) if not 0 < one.samples < _SAMPLES]
    points = [(one.step, max(one.deviation)) for one in seen if one.deviation]
    begun, now = _ends(points)
    limit = facts.thresholds.collapse_spread
    if len(points) < _LEAST or begun is None or now is None or not now < limit * begun:
        return None
    if reached(facts):
        return None
    return "spread", begun, now, _fell(points, limit * begun)


def _snapshots(facts: Facts, unit: Unit) -> list[ChannelSnapshot]:
    return [one for one in facts.measured.channels.get(unit.id, []) if one.step in facts.steps]


def _ends(points: list[tuple[int, float]]) -> tuple[float | None, float | None]:
    values = [value for _, value in points]
    return middle(values[:_FIRST]), middle(values[-max(len(values) // 4, 1) :])


def _fell(points: list[tuple[int, float]], limit: float) -> int:
    return next((step for step, value in points if value < limit), points[-1][0])


def reached(facts: Facts) -> bool:
    """Is hardly anything left of the loss, while the network's own output tells samples apart?

    A loss that is smallest where all outputs are the same is gone too, once they have collapsed.
    """
    losses = facts.losses
    if not losses or abs(losses[-1]) >= _REACHED * abs(losses[0]):
        return False
    spreads = [_ends(_spreads(facts, one.id)) for one in facts.units.values() if not one.path]
    known = [(begun, now) for begun, now in spreads if begun and now is not None]
    limit = facts.thresholds.collapse_spread
    return not known or any(now >= limit * begun for begun, now in known)


def _spreads(facts: Facts, id: UnitId) -> list[tuple[int, float]]:
    """Return how far the output of a unit varies over the batch, by step."""
    norms = dict(facts.points(id, "act_norm"))
    shares = facts.points(id, "batch_variance_ratio")
    return [(step, sqrt(max(share, 0.0)) * norms[step]) for step, share in shares if step in norms]


def _source(facts: Facts, unit: Unit, found: list[Finding]) -> str | None:
    """Return the first module that collapsed, if it is above this one or inside it."""
    return next(
        (
            one.unit
            for one in found
            if one.cause is None and not contains(facts.units[one.unit], unit)
        ),
        None,
    )


def _finding(
    facts: Facts, unit: Unit, what: str, begun: float, now: float, step: int, cause: str | None
) -> Finding:
    why = (
        f"{percent(begun)} of its mean square was variance over the batch at first, now "
        f"{percent(now)}"
        if what == "share"
        else f"the largest standard deviation of its channels fell to {percent(now / begun)} of "
        f"the {number(begun)} it had at first"
    )
    return Finding(
        flag="COLLAPSE",
        unit=unit.id,
        since=step,
        certainty="likely",
        why=f"{why}, from step {step} on",
        meaning="what is below it sees nearly the same for every sample, and can only learn a "
        "constant from it",
        help=f"look for a term of the loss that rewards a constant output of {named(unit)}: lower "
        "the weight of a KL term and warm it up from 0, or add a term that keeps the variance",
        numbers={"begun": begun, "now": now},
        cause=cause,
    )

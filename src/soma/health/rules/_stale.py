"""STALE_GRAD: steps that use gradients which an earlier step had used already."""

from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._finding import Finding
from soma.health._measurements import Unit, UnitId
from soma.health._words import named, several

EXPLANATION = Explanation(
    flag="STALE_GRAD",
    title="gradients of steps already taken are used again",
    measured="Whether a parameter's gradient was cleared between two steps that used it.",
    rule="In at least two steps, and in most of those in which an optimizer moved it, the gradient "
    "still held what an earlier step had used. Accumulation over several backward calls before one "
    "step is something else.",
    thresholds=(),
    source="https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html.",
    helps=(
        "`g.zero_grad()`, or `optimizer.zero_grad()`, before each backward",
        "a module that its own optimizer does not hold: `module.zero_grad()`",
    ),
)


def stale(facts: Facts) -> list[Finding]:
    """Find modules, or whole nodes, whose gradients are never cleared."""
    nodes = [unit for unit in facts.units.values() if not unit.path and unit.trainable]
    marked = {id: count for id in facts.family.holders if (count := _count(facts, id))}
    known = any(facts.points(id, "stale") for id in facts.family.holders)
    if not known:
        steps = [one.step for one in facts.steps.values() if one.stale]
        whole = len(steps) > 1 and 2 * len(steps) > len(facts.steps) - 1
        return [_finding(facts, one, len(steps), steps[0]) for one in nodes] if whole else []
    found = []
    for node in nodes:
        mine = [id for id in facts.family.holders if facts.units[id].node == node.node]
        hit = [id for id in mine if id in marked]
        tellers = [node.id] if hit and len(hit) == len(mine) else sorted(hit)
        count = max((marked[id] for id in hit), default=0)
        found += [_finding(facts, facts.units[id], count, _since(facts, hit[0])) for id in tellers]
    return found


def _count(facts: Facts, id: UnitId) -> int:
    """Return in how many steps a unit used old gradients; 0: in too few of its own."""
    values = facts.points(id, "stale")
    moved = {step for step, value in facts.points(id, "moved") if value > 0}
    own = [value for step, value in values if step in moved or value > 0 or not moved]
    count = sum(1 for one in own if one > 0)
    return count if count > 1 and 2 * count > len(own) - 1 else 0


def _since(facts: Facts, id: UnitId) -> int:
    return next(step for step, value in facts.points(id, "stale") if value > 0)


def _finding(facts: Facts, unit: Unit, count: int, step: int) -> Finding:
    return Finding(
        flag="STALE_GRAD",
        unit=unit.id,
        since=step,
        certainty="certain" if count > 2 else "likely",
        why=f"in {several(count, 'step')} of {len(facts.steps)} the gradients still held what an "
        "earlier step had used",
        meaning="each step repeats the ones before it, as a momentum of 1 that never fades",
        help=f"call `g.zero_grad()` before each backward, or `zero_grad()` on {named(unit)} if no "
        "optimizer that does so holds it",
        numbers={"steps": float(count)},
    )

"""FROZEN: parameters that get a gradient and never change."""

from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._finding import Finding
from soma.health._measurements import Unit, UnitId
from soma.health._words import named, percent, several

_PART_STEPS = 8  # steps before a part of a module, or all of a network, is called still
_LEAST_PART = 0.1  # of its elements; a bias before a normalisation gets nothing but rounding errors

EXPLANATION = Explanation(
    flag="FROZEN",
    title="its weights get a gradient and never change",
    measured="Which trainable parameters have a changed bit after each optimizer step, and which "
    "at the start of each step since the start of the one before.",
    rule="No bit of the module's trainable parameters changed in any of at least `patience` "
    "steps, though they got a gradient, while others moved; or each step changed them, and the "
    "next one started where it had started; or nothing moved at all in 8 steps "
    "though there is a loss left to lower. `requires_grad=False` is a choice, shown as a status "
    "and never a flag.",
    thresholds=("patience",),
    source="https://github.com/pytorch/pytorch/issues/40983 and kin: an optimizer that was built "
    "before a layer was replaced.",
    helps=(
        "make the optimizer after the last change to the modules, `g.make_optimizer(...)`",
        "look for a parameter group with `lr=0`, or a scheduler that brings it there",
        "look for what writes to weights after the step: `load_state_dict`, `copy_`, `clamp_`",
        "bfloat16 weights round small steps away: keep a float32 copy for the optimizer",
        "if it is meant, say so: `parameter.requires_grad_(False)`",
    ),
)


def frozen(facts: Facts) -> list[Finding]:
    """Find modules whose parameters should change and do not."""
    others = any(moved > 0 for id in facts.family.holders for _, moved in facts.points(id, "moved"))
    if not others and not (facts.unsolved and len(facts.steps) >= _PART_STEPS):
        return []
    still = {id: share for id in facts.family.holders if (share := _still(facts, id)) > 0}
    whole = facts.family.outward([id for id, share in still.items() if share == 1])
    found = [_finding(facts, facts.units[id], 1.0, outer) for id, outer in whole.items()]
    parts = [id for id in still if id not in whole]
    return found + [_finding(facts, facts.units[id], still[id], None) for id in sorted(parts)]


def _still(facts: Facts, id: UnitId) -> float:
    """Return the share of parameters that got a gradient and moved for nothing or never."""
    moved, grads = facts.points(id, "moved"), facts.points(id, "param_grad_norm")
    pushed = [step for step, value in grads if value > 0]
    if len(moved) < facts.thresholds.patience or len(pushed) < facts.thresholds.patience:
        return 0.0
    away = facts.points(id, "away_ever")
    last, gone = away[-1] if away else (0, 0.0)
    earlier = [step for step, value in moved if value > 0 and step < last]
    if not any(value for _, value in moved):
        return 0.0 if gone else 1.0  # somebody else may move them
    if not gone and len(earlier) >= facts.thresholds.patience:
        return 1.0
    ever, reached = facts.points(id, "moved_ever"), facts.points(id, "pushed_ever")
    if len(pushed) < _PART_STEPS or not ever or not reached:
        return 0.0
    then = [value for step, value in ever if step < last]
    back = then[-1] - gone if len(then) >= _PART_STEPS else 0.0
    part = reached[-1][1] - ever[-1][1] + back
    return part if part > _LEAST_PART else 0.0


def _finding(facts: Facts, unit: Unit, still: float, cause: UnitId | None) -> Finding:
    points = facts.points(unit.id, "moved")
    steps = several(len(points), "step")
    is_back = still == 1 and any(value > 0 for _, value in points)
    return Finding(
        flag="FROZEN",
        unit=unit.id,
        since=points[0][0],
        certainty="certain" if still == 1 and len(points) > 4 else "likely",
        why=_why(still, steps, is_back=is_back),
        meaning="it stays as it was built; what is below learns to live with it",
        help=f"look for what writes to the weights of {named(unit)} between the steps, as "
        "`load_state_dict`, `copy_` or `clamp_`; if it is meant, say `requires_grad_(False)`"
        if is_back
        else f"make the optimizer after {named(unit)} has its final parameters, and look for a "
        "parameter group with `lr=0`; if it is meant, say `requires_grad_(False)`",
        numbers={"still": still, "steps": float(len(points))},
        cause=cause,
    )


def _why(still: float, steps: str, *, is_back: bool) -> str:
    if is_back:
        return (
            f"the optimizer changed its trainable parameters in {steps}, and each next one "
            "started from the same values again"
        )
    if still == 1:
        return (
            f"none of its trainable parameters changed in any of {steps}, though they got a "
            "gradient"
        )
    return (
        f"{percent(still)} of its trainable parameters never changed in {steps}, though they got "
        "a gradient"
    )

"""VANISHING: (almost) nothing of the loss's gradient arrives at a module."""

from itertools import pairwise

from soma.health._explanation import Explanation
from soma.health._facts import Facts, middle, since
from soma.health._family import by_order, contains
from soma.health._finding import Finding
from soma.health._measurements import Unit, UnitId
from soma.health._words import named, number, quoted, several, ticked
from soma.health.rules._opening import is_apart, is_done, opens

_OWN_LOSS = 30.0  # a container that loses so much of the gradient inside is where it is lost
_PASSES_ON = 3.0  # and one that loses less than this passes on what it gets

EXPLANATION = Explanation(
    flag="VANISHING",
    title="hardly any of the loss's gradient arrives",
    measured="The norm of the loss's gradient at a module's output over the norm at the "
    "network's output, and both again times the values they are gradients of, where the "
    "network's product is at least the loss. Where the network ends in a sigmoid, tanh or "
    "softmax, the gradient before that one counts as the network's.",
    rule="The median over the last half of the measured steps is below both thresholds, for a "
    "module with trainable parameters; or the gradient was exactly 0 in each step. A "
    "normalisation further on undoes a large scale and makes gradients small, not products; "
    "that is why there are two. Modules that only pass on to others what a container after them "
    "has lost are named in the finding at that container. A branch that begins multiplied by 0, as "
    "in ReZero, is let to open: its gradient was exactly 0 in the first step, and grows, or has "
    "been above the line. So are modules beside a way that the gradient takes to those above "
    "them, as queries and keys whose weights begin small, once four times as much has arrived "
    "as at first, beside what goes that way. What got its share until the loss was gone has done "
    "its work. Where the output has several parts, as of an actor and a critic, a module that gets "
    "its share of its own part's gradient, and moves as others do, is not flagged.",
    thresholds=("vanishing", "vanishing_product", "patience"),
    source="Hochreiter 1991; Bengio, Simard, Frasconi 1994; Glorot and Bengio 2010.",
    helps=(
        "weights that keep the scale: `nn.init.kaiming_normal_` before ReLU, "
        "`nn.init.xavier_normal_(w, 5 / 3)` before tanh",
        "a residual path around the stretch that loses it, `x + f(x)`",
        "a LayerNorm or BatchNorm between the layers",
        "a branch that is multiplied by 0 gets none: start its factor at a small number instead",
    ),
)


def vanishing(facts: Facts) -> list[Finding]:
    """Find modules with trainable parameters that the gradient does not reach."""
    starved: list[Unit] = []
    found: list[Finding] = []
    for unit in facts.family.ordered:
        if not unit.trainable or facts.frozen(unit.id) or unit.feeds_output:
            continue
        if _never(facts, unit):
            found.append(_exact_zero(facts, unit))
        elif _is_low(facts, unit):
            starved.append(unit)
    lossy = [one for one in starved if not _passes_on(facts, one, starved)]
    silent = [one for one in starved if one not in lossy]
    roots = {one.id: _root(facts, one, lossy) for one in lossy}
    return found + [_low(facts, one, lossy, silent, roots) for one in lossy]


def _never(facts: Facts, unit: Unit) -> bool:
    """Was the gradient 0 in each step, while others got some?"""
    values = [value for step, value in facts.points(unit.id, "out_grad_norm")]
    judged = [value for step, value in facts.gradients(unit.id)]
    return len(judged) >= facts.thresholds.patience and not any(values)


def _is_low(facts: Facts, unit: Unit) -> bool:
    limits = facts.thresholds
    ratio, product = facts.share(unit.id), _product(facts, unit)
    if ratio is None or ratio >= limits.vanishing:
        return False
    if product is not None and product >= limits.vanishing_product:
        return False
    well = opens(facts, unit, ratio) or is_done(facts, unit) or is_apart(facts, unit)
    return not well


def _product(facts: Facts, unit: Unit) -> float | None:
    return middle([v for step, v in facts.products(unit.id) if step in facts.window and v > 0])


def _passes_on(facts: Facts, unit: Unit, starved: list[Unit]) -> bool:
    """Is the gradient lost inside a later container, and not by this unit?"""
    seen: set[tuple[str, str]] = set()
    for lost in starved:
        if lost.node != unit.node or lost.order < unit.order:
            continue
        here, there = _apart(unit, lost)
        if there in ("", lost.path) or (here, there) in seen:
            continue
        seen.add((here, there))
        fall_there = _fall(facts, unit.node, there, facts.thresholds.vanishing)
        if fall_there >= _OWN_LOSS and _fall(facts, unit.node, here, 0.0) < _PASSES_ON:
            return True
    return False


def _apart(one: Unit, other: Unit) -> tuple[str, str]:
    """Return the paths of the first containers that hold one of two units and not the other."""
    mine, others = one.path.split("."), other.path.split(".")
    for depth, (my, its) in enumerate(zip(mine, others, strict=False)):
        if my != its:
            return ".".join(mine[: depth + 1]), ".".join(others[: depth + 1])
    return "", ""


def _fall(facts: Facts, node: str, path: str, least: float) -> float:
    """Return how many times smaller a gradient gets inside a container that gets at least some."""
    shares = [facts.share(one.id) for one in facts.family.inside(node, path)]
    inside = [one for one in shares if one is not None]
    return max(inside) / min(inside) if inside and max(inside) >= least else 1.0


def _exact_zero(facts: Facts, unit: Unit) -> Finding:
    points = facts.points(unit.id, "out_grad_norm")
    return Finding(
        flag="VANISHING",
        unit=unit.id,
        since=points[0][0],
        certainty="certain",
        why=f"the loss's gradient at its output was exactly 0 in all of "
        f"{several(len(points), 'step')}, while the network's output got some",
        meaning="its weights do not learn, and nothing above it learns through it",
        help=f"find what multiplies the output of {named(unit)} by 0, or cuts it off, as a "
        "factor of 0.0, a dead activation or a mask, and start that factor at a small number",
        numbers={"gradient": 0.0, "steps": float(len(points))},
    )


def _low(
    facts: Facts,
    unit: Unit,
    lossy: list[Unit],
    silent: list[Unit],
    roots: dict[UnitId, UnitId | None],
) -> Finding:
    limit = facts.thresholds.vanishing
    ratio = facts.share(unit.id) or 0.0
    head = roots[unit.id] is None
    line = [one for one in lossy if roots[one.id] == unit.id] if head else []
    lowest = min([unit, *line], key=lambda one: facts.share(one.id) or 0.0)
    decay, layers = _decay(facts, lowest)
    above = [one for one in silent if one.order < unit.order and one.id in facts.family.holders]
    numbers = {"ratio": ratio, "limit": limit}
    if layers > 1:
        numbers |= {"decay_per_layer": decay, "layers": float(layers)}
    return Finding(
        flag="VANISHING",
        unit=unit.id,
        since=since(facts.gradients(unit.id), 0.0, limit),
        certainty="certain" if ratio < 0.5 * limit else "likely",
        why=f"{number(ratio)} of the gradient at the network's output arrives (median of "
        f"{several(len(facts.recent(unit.id, 'out_grad_norm')), 'step')}, the line is "
        f"{number(limit)})"
        + (
            ""
            if lowest is unit
            else f", and {number(facts.share(lowest.id) or 0.0)} at {ticked(lowest.id)}"
        )
        + (f"; it shrinks to {number(decay)} per layer over {layers} layers" if layers > 1 else ""),
        meaning="it learns much slower than what comes after it"
        + (f"; {quoted(above)} above it pass on what is left" if above and head else ""),
        help=_help(lowest, decay, layers),
        numbers=numbers,
        cause=roots[unit.id],
    )


def _help(unit: Unit, decay: float, layers: int) -> str:
    if layers < 2:
        return (
            f"look at what scales the output of {named(unit)} down before it joins the rest, "
            "and scale it by a factor that is learnt and starts near 1"
        )
    return (
        f"scale the weights from {named(unit)} on so that the gradient keeps its size (about "
        f"{number(min(1 / decay, 1e3))} times larger, as `nn.init.xavier_normal_(w, 5 / 3)` "
        "does before tanh), or add a residual path around them"
    )


def _stairs(facts: Facts, unit: Unit) -> list[tuple[Unit, float]]:
    """Return the innermost modules with weights from a unit on, as the gradient grows."""
    stairs: list[tuple[Unit, float]] = []
    for one in facts.family.inside(unit.node, ""):
        if one.id not in facts.family.holders or contains(one, unit):
            continue
        value = facts.share(one.id)
        if value is None or (one.order < unit.order and not contains(unit, one)):
            continue
        if stairs and value < stairs[-1][1]:
            if stairs[-1][1] < facts.thresholds.vanishing:
                continue
            break
        stairs.append((one, value))
    return stairs


def _decay(facts: Facts, unit: Unit) -> tuple[float, int]:
    """Return the factor per layer between a unit and the first that gets its share, and layers."""
    stairs = _stairs(facts, unit)
    if len(stairs) < 2:
        return 1.0, 0
    rises = [later / earlier for (_, earlier), (_, later) in pairwise(stairs)]
    layers = len(rises)
    return (stairs[0][1] / stairs[-1][1]) ** (1 / layers), layers


def _root(facts: Facts, unit: Unit, lossy: list[Unit]) -> UnitId | None:
    """Return the module of the same staircase at which the gradient first falls too low."""
    line = {one.id for one, _ in _stairs(facts, unit)}
    last = [one for one in sorted(lossy, key=by_order) if one.id in line]
    return last[-1].id if last and last[-1].id != unit.id else None

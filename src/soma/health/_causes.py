"""Which findings follow from others, so that one story is told once.

A finding that follows from another gets the other's unit as its `cause`; one that says nothing
new beside the other is dropped. Flags, the steps they begin at and the order of calls decide.
"""

from dataclasses import replace

from soma.health._facts import Facts
from soma.health._family import by_order, contains
from soma.health._finding import Finding
from soma.health._measurements import UnitId
from soma.health.rules._opening import passed_by


def without_repeats(facts: Facts, found: list[Finding]) -> list[Finding]:
    """Name the cause of findings that follow from another, and drop those that say nothing new."""
    return [
        replace(one, cause=cause) if (cause := _cause(facts, one, found)) != one.cause else one
        for one in found
        if not _is_told_by_others(facts, one, found)
    ]


def _is_told_by_others(facts: Facts, one: Finding, found: list[Finding]) -> bool:
    """Does a finding say nothing that another one does not say already?"""
    here = {other.name for other in found if other.unit == one.unit}
    match one.name:
        case "FROZEN" | "LR_LOW":  # it does not move because nothing arrives, or nothing goes in
            return bool(here & {"VANISHING", "NO_GRAD", "UNUSED"}) or _starves(facts, one, found)
        case "IGNORED_CHANNELS":  # all of it, since a dead activation or a flat one lets nothing by
            whole = one.numbers.get("ignored") == one.numbers.get("channels")
            return whole and _nearest(facts, one, found, {"DEAD"}) is not None
        case "COLLAPSE":
            if "DEAD" in here or _nearest(facts, one, found, {"DEAD"}, after=False) is not None:
                return True
            order = facts.units[one.unit].order
            return any(  # where nothing went through from the start, biases drown what is left
                other.name == "VANISHING"
                and other.since <= one.since
                and facts.units[other.unit].order < order
                and passed_by(facts, facts.units[other.unit]) is None  # else it went around
                for other in found
            )
    return False


def _starves(facts: Facts, one: Finding, found: list[Finding]) -> bool:
    """Does a unit hang on a dead one, lie before a flat one, or pass on what has vanished?"""
    none_moves = one.name == "LR_LOW" and one.certainty == "possible"
    if none_moves and _nearest(facts, one, found, {"SATURATED"}) is not None:
        return True
    given = facts.family.before(one.unit)
    part = one.numbers.get("still", 0.0) < 1  # the rest of it, as a bias, moves
    if part and given and any((f.unit, f.name) == (given.id, "DEAD") for f in found):
        return True
    share = facts.share(one.unit)
    low = share is not None and share < facts.thresholds.vanishing
    return low and any(f.name == "VANISHING" for f in found)


def _cause(facts: Facts, one: Finding, found: list[Finding]) -> UnitId | None:
    """Return the unit whose finding brings one about."""
    if one.cause is not None:
        return one.cause
    match one.name:
        case "VANISHING":
            return _nearest(facts, one, found, {"DEAD", "SATURATED"})
        case "NAN" | "INF":
            return _earlier(one, found, {"LR_HIGH"}) or _earlier(one, found, {"EXPLODING"})
        case "EXPLODING":
            return _earlier(one, found, {"LR_HIGH"})
        case "COLLAPSE":
            return _earlier(one, found, {"LR_HIGH", "EXPLODING"})
        case "IGNORED_CHANNELS":  # of a unit that gets nothing at all
            return _earlier(one, [f for f in found if f.unit == one.unit], {"VANISHING"})
        case "UNOBSERVED":
            outer = {unit.id for unit in facts.family.above(one.unit)}
            return _earlier(one, [f for f in found if f.unit in outer], {"UNUSED"})
    return None


def _nearest(
    facts: Facts, one: Finding, found: list[Finding], flags: set[str], *, after: bool = True
) -> UnitId | None:
    """Return the nearest unit after (or before) one's own that has one of some flags."""
    unit = facts.units[one.unit]
    units = [
        facts.units[other.unit]
        for other in found
        if other.name in flags and other.unit != one.unit and other.cause is None
    ]
    if after:
        near = [
            u
            for u in units
            if contains(unit, u) or (u.order > unit.order and not contains(u, unit))
        ]
        near += [u for u in units if contains(u, unit) and u not in near]
        return min(near, key=by_order).id if near else None
    near = [u for u in units if u.order < unit.order or contains(unit, u)]
    return max(near, key=by_order).id if near else None


def _earlier(one: Finding, found: list[Finding], flags: set[str]) -> UnitId | None:
    """Return the first unit that had one of some flags no later than this finding."""
    return next(
        (
            other.unit
            for other in found
            if other.name in flags and other.since <= one.since and other.cause is None
        ),
        None,
    )

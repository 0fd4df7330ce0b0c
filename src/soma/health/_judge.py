"""From measurements to a verdict: ask every rule, tell each story once, worst first."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from types import MappingProxyType
from typing import Any

from soma.health._facts import Facts
from soma.health._family import by_order, contains, in_order
from soma.health._finding import FilterReport, Finding, Verdict
from soma.health._measurements import Measurements, Status, Unit, UnitId
from soma.health._thresholds import Thresholds
from soma.health.rules import RULES
from soma.health.rules._opening import passed_by

_WORST_FIRST = (
    "NAN", "INF", "EXPLODING", "NO_GRAD", "UNUSED", "DEAD", "STALE_GRAD", "LR_HIGH", "VANISHING",
    "FROZEN", "COLLAPSE", "LEAKAGE", "SATURATED", "IGNORED_CHANNELS", "DEAD_CHANNELS", "LR_LOW",
    "UNOBSERVED", "NO_DATA",
)  # fmt: skip
NEUTRAL = frozenset({"UNOBSERVED", "NO_DATA"})  # flags that tell of no fault
_CERTAINTIES = ("certain", "likely", "possible")


def judge(
    measurements: Measurements, thresholds: Mapping[str, float] | Thresholds | None = None
) -> Verdict:
    """Return the verdict on what an audit measured; the same numbers give the same verdict.

    Raises:
        InvalidThreshold: a threshold that no rule has, or a value that is none.
    """
    facts = Facts(measurements, Thresholds.of(thresholds))
    found = [finding for rule in RULES for finding in rule(facts)]
    findings = _ranked(facts, _related(facts, found))
    by_unit: dict[UnitId, list[Finding]] = {}
    for one in findings:
        by_unit.setdefault(one.unit, []).append(one)
    units = in_order(facts.units.values())
    return Verdict(
        filters=tuple(_row(facts, one, by_unit.get(one.id, [])) for one in units),
        findings=tuple(findings),
        n_steps=max((one.step + 1 for one in measurements.steps), default=0),  # some may be thinned
        thresholds=facts.thresholds,
        facts=MappingProxyType(_whole(facts)),
    )


def _related(facts: Facts, found: list[Finding]) -> list[Finding]:
    """Name the cause of findings that another one brings about, and drop what it says already."""
    return [
        replace(one, cause=cause) if (cause := _cause(facts, one, found)) != one.cause else one
        for one in found
        if not _said(facts, one, found)
    ]


def _said(facts: Facts, one: Finding, found: list[Finding]) -> bool:
    """Is a finding nothing but the shadow of another?"""
    here = {other.name for other in found if other.unit == one.unit}
    match one.name:
        case "FROZEN" | "LR_LOW":  # it does not move because nothing arrives, or nothing goes in
            return bool(here & {"VANISHING", "NO_GRAD", "UNUSED"}) or _starves(facts, one, found)
        case "IGNORED_CHANNELS":  # all of it, since a dead activation or a flat one lets nothing by
            whole = one.numbers.get("ignored") == one.numbers.get("channels")
            return whole and _blocked(facts, one, found, {"DEAD"}) is not None
        case "COLLAPSE":
            if "DEAD" in here or _blocked(facts, one, found, {"DEAD"}, after=False) is not None:
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
    """Does a unit hang on one that is dead, or pass on what a vanishing one has lost?"""
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
            return _blocked(facts, one, found, {"DEAD", "SATURATED"})
        case "NAN" | "INF":
            return _other(one, found, {"LR_HIGH"}) or _other(one, found, {"EXPLODING"})
        case "EXPLODING":
            return _other(one, found, {"LR_HIGH"})
        case "COLLAPSE":
            return _other(one, found, {"LR_HIGH", "EXPLODING"})
        case "IGNORED_CHANNELS":  # of a unit that gets nothing at all
            return _other(one, [f for f in found if f.unit == one.unit], {"VANISHING"})
        case "UNOBSERVED":
            outer = {unit.id for unit in facts.family.above(one.unit)}
            return _other(one, [f for f in found if f.unit in outer], {"UNUSED"})
    return None


def _blocked(
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


def _other(one: Finding, found: list[Finding], flags: set[str]) -> UnitId | None:
    """Return the first unit that had one of some flags no later than this finding."""
    return next(
        (
            other.unit
            for other in found
            if other.name in flags and other.since <= one.since and other.cause is None
        ),
        None,
    )


def _ranked(facts: Facts, found: list[Finding]) -> list[Finding]:
    """Return findings by story, the worst first; a story opens with its cause."""

    def badness(one: Finding) -> tuple[int, int, bool, int]:
        return (
            _WORST_FIRST.index(one.name),
            _CERTAINTIES.index(one.certainty),
            *by_order(facts.units[one.unit]),
        )

    ordered = sorted(found, key=badness)
    by_cause: dict[UnitId | None, list[Finding]] = {}
    for one in ordered:
        by_cause.setdefault(one.cause, []).append(one)
    told: set[int] = set()  # findings are compared by identity: two may say the same
    stories = [_story(head, by_cause, told) for head in by_cause.get(None, [])]
    stories.sort(key=lambda story: min(map(badness, story)))
    return [
        *(one for story in stories for one in story),
        *(one for one in ordered if id(one) not in told),
    ]


def _story(
    head: Finding, by_cause: dict[UnitId | None, list[Finding]], told: set[int]
) -> list[Finding]:
    """Return a finding and what it brings about, over any number of hops."""
    story = [head]
    told.add(id(head))
    for one in story:
        for other in by_cause.get(one.unit, []):
            if id(other) not in told:
                told.add(id(other))
                story.append(other)
    return story


def _row(facts: Facts, unit: Unit, mine: list[Finding]) -> FilterReport:
    steps = {
        step for series in facts.measured.series.get(unit.id, {}).values() for step in series.steps
    }
    return FilterReport(
        filter_id=unit.id,
        flags=list(dict.fromkeys(one.flag for one in mine)),
        findings=tuple(mine),
        status=_status(unit),
        n_steps=len(steps),
        metrics=MappingProxyType(dict(_metrics(facts, unit.id))),
    )


def _status(unit: Unit) -> Status:
    if unit.parameters == 0:
        return "no parameters"
    return "measured" if unit.trainable else "frozen by choice"


def _metrics(facts: Facts, id: UnitId) -> Iterator[tuple[str, float]]:
    """Return the medians over the last half of the measured steps, of what was measured."""
    for name, series in facts.measured.series.get(id, {}).items():
        recent = facts.recent(id, name) or series.values[len(series.values) // 2 :]
        if recent:
            yield name, median(recent)


def _whole(facts: Facts) -> dict[str, Any]:
    """Return what a report says of the run as a whole."""
    measured = facts.measured
    return {
        "judged_steps": len(facts.steps),
        "skipped_steps": sum(one.skipped for one in measured.steps),
        "first_step": min((one.step for one in measured.steps), default=None),
        "last_step": max((one.step for one in measured.steps), default=None),
        "every": measured.every,
        "notes": (*measured.notes, *_doubts(facts)),
        "places": {
            unit.id: (unit.class_name, unit.source, unit.node) for unit in measured.units.values()
        },
    }


def _doubts(facts: Facts) -> Iterator[str]:
    """Say what could not be judged as well as it might."""
    if facts.steps and all(one.loss is None for one in facts.steps.values()):
        yield (
            "the loss is not known, so the line of LR_HIGH is `lr_high_blind`, and LR_LOW is seen "
            "only beside modules that move"
        )

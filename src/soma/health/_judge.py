"""`judge`: from measurements to a verdict.

Every rule is asked, `rules/`; findings that follow from others are named as such or dropped,
`_causes.py`; the rest is sorted into stories, the worst first, `_severity.py`.
"""

from collections.abc import Iterator, Mapping
from statistics import median
from types import MappingProxyType
from typing import Any

from soma.health._causes import without_repeats
from soma.health._facts import Facts
from soma.health._family import by_order, in_order
from soma.health._finding import FilterReport, Finding, Verdict
from soma.health._measurements import Measurements, Status, Unit, UnitId
from soma.health._severity import WORST_FIRST
from soma.health._thresholds import Thresholds
from soma.health.rules import RULES

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
    findings = _ranked(facts, without_repeats(facts, found))
    by_unit: dict[UnitId, list[Finding]] = {}
    for one in findings:
        by_unit.setdefault(one.unit, []).append(one)
    units = in_order(facts.units.values())
    return Verdict(
        filters=tuple(_row(facts, one, by_unit.get(one.id, [])) for one in units),
        findings=tuple(findings),
        n_steps=max((one.step + 1 for one in measurements.steps), default=0),  # some may be thinned
        thresholds=facts.thresholds,
        facts=MappingProxyType(_about_the_run(facts)),
    )


def _ranked(facts: Facts, found: list[Finding]) -> list[Finding]:
    """Return findings by story, the worst first; a story opens with its cause."""

    def badness(one: Finding) -> tuple[int, int, bool, int]:
        return (
            WORST_FIRST.index(one.name),
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


def _about_the_run(facts: Facts) -> dict[str, Any]:
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
    """Give notes on what could not be judged as well as it might."""
    if facts.steps and all(one.loss is None for one in facts.steps.values()):
        yield (
            "the loss is not known, so the line of LR_HIGH is `lr_high_blind`, and LR_LOW is seen "
            "only beside modules that move"
        )

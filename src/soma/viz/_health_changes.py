"""What became of a run's health in another run: which findings are new, gone, worse or better."""

from typing import Literal, NamedTuple

from soma.health import NEUTRAL, AuditReport, Finding, UnitId

Kind = Literal["new", "worse", "same", "better", "gone", "not seen"]
_CERTAINTIES = ("possible", "likely", "certain")


class HealthChange(NamedTuple):
    """A flag of one module, in the run before and in the one after."""

    kind: Kind
    unit: UnitId
    before: str  # the flag, with its count; "": there is none
    after: str
    since: int  # of the later run where it is there, else of the earlier one
    why: str


def health_changes(before: AuditReport, after: AuditReport) -> list[HealthChange]:
    """Return what changed between two verdicts, the worst first.

    A finding is worse if more channels have it, or if it became surer. It is `not seen`, and not
    gone, where the later run did not look at the module. What tells of no fault is left out.
    """
    earlier, later = _by_place(before), _by_place(after)
    looked = {row.filter_id for row in after.filters if row.metrics}
    found = []
    for key, one in later.items():
        last = earlier.get(key)
        kind: Kind = "new" if last is None else _kind(last, one)
        flag = "" if last is None else last.flag
        found.append(HealthChange(kind, one.unit, flag, one.flag, one.since, one.why))
    for key, one in earlier.items():
        if key not in later:
            gone: Kind = "gone" if one.unit in looked else "not seen"
            found.append(HealthChange(gone, one.unit, one.flag, "", one.since, one.why))
    order = ("new", "worse", "same", "not seen", "better", "gone")
    return sorted(found, key=lambda change: order.index(change.kind))


def _by_place(report: AuditReport) -> dict[tuple[UnitId, str], Finding]:
    """Return the worst finding of each module and flag."""
    found: dict[tuple[UnitId, str], Finding] = {}
    for one in report.findings:
        if one.name not in NEUTRAL:
            key = (one.unit, one.name)
            found[key] = max(found.get(key, one), one, key=_weight)
    return found


def _kind(before: Finding, after: Finding) -> Kind:
    first, second = _weight(before), _weight(after)
    return "worse" if second > first else "better" if second < first else "same"


def _weight(one: Finding) -> tuple[int, int]:
    return len(one.channels), _CERTAINTIES.index(one.certainty)

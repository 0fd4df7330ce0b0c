"""Which modules of an audit a figure is about, and how it names them."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from statistics import median

from soma.errors import NotRecorded, did_you_mean, listing
from soma.health import NEUTRAL, AuditReport, Finding, Measurements, Series, Step, Unit, UnitId


def by_call(measured: Measurements) -> list[Unit]:
    """Return the modules in the order of their first call, those that were not called last."""
    return sorted(measured.units.values(), key=lambda one: (one.order < 0, one.order))


def innermost(units: Iterable[Unit]) -> list[Unit]:
    """Return the modules that hold no other one of them."""
    given = list(units)
    ids = {one.id for one in given}
    return [one for one in given if not ids & set(one.children)]


def named(measured: Measurements, run: str, patterns: Sequence[str]) -> list[UnitId]:
    """Return the ids of modules that patterns name, `encoder/trunk.*`, in the order of calls.

    Raises:
        NotRecorded: a pattern names none.
    """
    known = [one.id for one in by_call(measured)]
    found = {id for pattern in patterns for id in known if _fits(id, pattern)}
    for pattern in patterns:
        if not any(_fits(id, pattern) for id in known):
            raise NotRecorded(
                f"no module `{pattern}` was audited in the run `{run}`; there is "
                f"{listing(known) or 'none'}.{did_you_mean(pattern, known)} `inside=` of "
                "`g.gradient_audit` says what is audited."
            )
    return [id for id in known if id in found]


def _fits(id: UnitId, pattern: str) -> bool:
    return id == pattern or fnmatchcase(id, pattern)  # `encoder[0]` is a name, and no pattern


def faults_of(report: AuditReport) -> list[Finding]:
    """Return the findings that tell of a fault."""
    return [one for one in report.findings if one.name not in NEUTRAL]


def flags_of(report: AuditReport) -> dict[UnitId, tuple[str, ...]]:
    """Return the flags of each module that has some, those that tell of no fault left out."""
    found: dict[UnitId, list[str]] = {}
    for one in faults_of(report):
        found.setdefault(one.unit, []).append(one.flag)
    return {id: tuple(dict.fromkeys(flags)) for id, flags in found.items()}


def ratio(series: Series | None, steps: dict[int, Step], of: str) -> float | None:
    """Return a number over one of its steps', the median over the last half of the steps.

    Args:
        of: the name of a field of `Step`.
    """
    if series is None:
        return None
    found = []
    for step, value in zip(series.steps, series.values, strict=True):
        whole = getattr(steps[step], of) if step in steps else 0.0
        share = value / whole if whole > 0 else float("nan")
        if 0 <= share < float("inf"):
            found.append(share)
    return median(found[len(found) // 2 :]) if found else None

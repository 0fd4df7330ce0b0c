"""Findings as compiler messages: one a story, consequences below their cause."""

from collections.abc import Iterator
from typing import Literal

from soma.core import Diagnostic
from soma.draw import printable, shortened
from soma.health._explain import explain
from soma.health._finding import FilterReport, Finding, Verdict
from soma.health._severity import ERRORS, NEUTRAL
from soma.health._words import listed, place, several, ticked

_MOST = 4  # consequences named one by one
_LONGEST_ID = 80


def stories(verdict: Verdict) -> Iterator[Diagnostic]:
    """Return the stories, worst first; each finding stands in one of them."""
    left = list(verdict.findings)
    while left:
        head = left.pop(0)
        follow = _same(head, left) if head.name in NEUTRAL else _consequences(head, left)
        left = [one for one in left if not any(one is other for other in follow)]
        yield diagnostic(verdict, head, follow)


def diagnostic(verdict: Verdict, head: Finding, follow: list[Finding]) -> Diagnostic:
    """Return a finding, with those that it brings about, in the form of the compiler's."""
    name, source, _ = verdict.facts.get("places", {}).get(head.unit, ("", "", ""))
    remarks = [place(name, source)] if name and source else []
    sure = "" if head.certainty == "certain" else f" ({head.certainty})"
    return Diagnostic(
        level=_level([head, *follow]),
        code=head.name if head.name in NEUTRAL else head.flag,
        node=shortened(clean(head.unit), _LONGEST_ID),
        message=f"{explain(head.name).title}, since step {head.since}{sure}",
        remarks=(*remarks, head.why, f"so {head.meaning}", *_told_with(head, follow)),
        help=head.help,
    )


def _level(story: list[Finding]) -> Literal["error", "warning", "note"]:
    if all(one.name in NEUTRAL or one.certainty == "possible" for one in story):
        return "note"
    return "error" if any(one.name in ERRORS for one in story) else "warning"


def _same(head: Finding, left: list[Finding]) -> list[Finding]:
    return [one for one in left if one.flag == head.flag]


def _consequences(head: Finding, left: list[Finding]) -> list[Finding]:
    """Return the findings that follow from one, over any number of hops."""
    found: list[Finding] = []
    units = {head.unit}
    for one in left:
        if one.cause in units:
            found.append(one)
            units.add(one.unit)
    return found


def _told_with(head: Finding, follow: list[Finding]) -> Iterator[str]:
    """Return what else belongs to the story, flag by flag."""
    for flag in dict.fromkeys(one.flag for one in follow):
        same = [one for one in follow if one.flag == flag]
        units = [ticked(one.unit) for one in same]
        if len(units) > _MOST:
            units[_MOST - 1 :] = [several(len(units) - _MOST + 1, "more module")]
        why = "" if same[0].name == head.name else f": {same[0].why}"
        yield f"with it {flag} at {listed(units, 'module')}{why}"


def summary(verdict: Verdict) -> str:
    """Return one line: how many units, steps and stories."""
    units = several(len(verdict.filters), "module")
    sick = sum(1 for row in verdict.filters if faults(row))
    unseen = sum(1 for row in verdict.filters if not faults(row) and row.flags)
    parts = [f"{sick} with findings" if sick else "no findings"]
    if unseen:
        parts.append(f"{unseen} not observed")
    return f"health of {units} over {several(verdict.n_steps, 'step')}: {', '.join(parts)}"


def faults(row: FilterReport) -> list[str]:
    """Return the flags of a row that tell of a fault."""
    return [flag for flag in row.flags if flag.partition("(")[0] not in NEUTRAL]


def clean(text: object) -> str:
    """Return text without what would move a cursor or end a line."""
    return printable(str(text))

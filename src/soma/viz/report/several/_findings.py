"""What audits found in the runs: each finding with how many have it, and each run's own."""

from typing import NamedTuple

from soma.draw import counted, shortened
from soma.viz.report._fill import fill
from soma.viz.report._section import Section
from soma.viz.report.several._facts import RunsFacts
from soma.viz.report.several._one import MOST_FINDINGS, OneRun
from soma.viz.report.several._table import LOOKS, finding_line

_MOST_COMMON = 40  # rows
_MOST_RUNS = 40
_MOST_LINE = 160  # columns


class Common(NamedTuple):
    """A flag of one module, in some of the runs."""

    flag: str
    unit: str
    certainty: str  # the surest
    runs: list[OneRun]
    why: str  # of the first


class Found(NamedTuple):
    """The findings of one run."""

    run: OneRun
    sign: str
    ink: str
    lines: list[str]
    more: int


def findings_section(facts: RunsFacts) -> Section | None:
    """Return the findings; None where nothing was audited."""
    audited = [run for run in facts.runs if run.health.word != "no audit"]
    if not audited:
        return None
    faulty = [run for run in audited if run.health.faults]
    common = _common(faulty)
    left_out = []
    if len(faulty) > _MOST_RUNS:
        left_out.append(f"The findings of {_MOST_RUNS} of {len(faulty):,} runs are listed.")
    if any(run.health.found > MOST_FINDINGS for run in faulty):
        left_out.append(f"Of each run the {MOST_FINDINGS} worst findings are told.")
    if len(common) > _MOST_COMMON:
        left_out.append(f"{_MOST_COMMON} of {len(common):,} findings are counted over the runs.")
    return Section(
        key="health",
        title="Health",
        count=f"findings in {len(faulty):,} of {counted(len(audited), 'audited run')}",
        body=fill(
            "several_findings.jinja",
            common=common[:_MOST_COMMON],
            audited=len(audited),
            found=[_found(run) for run in faulty[:_MOST_RUNS]],
        ),
        left_out=tuple(left_out),
    )


def _common(runs: list[OneRun]) -> list[Common]:
    """Return each flag of each module, those of most runs first."""
    order = ("possible", "likely", "certain")
    found: dict[tuple[str, str], Common] = {}
    for run in runs:
        for one in run.health.faults:
            key = one.name, one.unit
            before = found.setdefault(key, Common(*key, one.certainty, [], one.why))
            if not before.runs or before.runs[-1] is not run:
                before.runs.append(run)
            sure = max(before.certainty, one.certainty, key=order.index)
            found[key] = before._replace(certainty=sure)
    return sorted(found.values(), key=lambda one: -len(one.runs))


def _found(run: OneRun) -> Found:
    lines = [shortened(finding_line(one), _MOST_LINE) for one in run.health.faults]
    return Found(run, *LOOKS[run.health.word], lines, run.health.found - len(lines))

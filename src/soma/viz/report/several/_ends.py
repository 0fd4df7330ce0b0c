"""Why runs did not complete: pruned, failed, broken, or still going on."""

from typing import NamedTuple

from soma.draw import counted, shortened
from soma.viz._durations import duration
from soma.viz.report._fill import fill
from soma.viz.report._section import Section
from soma.viz.report.several._facts import RunsFacts
from soma.viz.report.several._one import OneRun

_MOST_ERROR = 300  # columns
_UNSAID = {"running": "It was going on when this report was made."}


class End(NamedTuple):
    """How one run ended."""

    run: OneRun
    took: str
    why: str


def ends_section(facts: RunsFacts) -> Section | None:
    """Return the runs that did not complete, with the reason; None where all did."""
    ends = [_end(run) for run in facts.runs if run.standing.state != "completed"]
    if not ends:
        return None
    return Section(
        key="ends",
        title="Not completed",
        count=counted(len(ends), "run"),
        body=fill("several_ends.jinja", ends=ends),
    )


def _end(run: OneRun) -> End:
    why = run.standing.error or _UNSAID.get(run.standing.state, "It did not say why.")
    took = "" if run.seconds is None else duration(run.seconds)
    return End(run, took, shortened(why, _MOST_ERROR))

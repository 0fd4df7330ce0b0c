"""What is told of one run among others, read once and kept small."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from typing import Literal, NamedTuple

from soma.draw import Ink
from soma.errors import UnknownRun
from soma.health import Finding, HealthRecord
from soma.tracking import Manifest, RunRecord, Standing
from soma.viz._when import seconds_taken
from soma.viz.figures import Curve, faults_of, metrics_info
from soma.viz.report._curves import thinner

MOST_FINDINGS = 8  # that are told of a run

Word = Literal["healthy", "suspect", "sick", "not observed", "no audit"]


class Health(NamedTuple):
    """A verdict in a word, and what led to it."""

    word: Word
    faults: tuple[Finding, ...] = ()  # the worst first, not more than are told
    found: int = 0  # of all
    steps: int = 0


class Numbers(NamedTuple):
    """What is left of a metric in one run; None where no number is finite."""

    last: float
    least: float | None
    greatest: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """One run, as its directory told it at one moment."""

    id: str
    manifest: Manifest
    standing: Standing
    seconds: float | None  # how long it took, or goes on already; None where nobody knows
    curves: Mapping[str, Curve]
    health: Health
    label: str = ""  # a name that no other run beside it has
    ink: Ink = "line"  # its colour in every figure; this one has no colour of its own

    @property
    def readable(self) -> bool:
        """Whether it says what it was started as."""
        return self.standing.state != "unreadable"

    def numbers(self, metric: str) -> Numbers | None:
        """Return the numbers of a metric; None where it was not logged."""
        curve = self.curves.get(metric)
        if curve is None:
            return None
        finite = [value for value in curve.values if isfinite(value)]
        return Numbers(curve.values[-1], min(finite, default=None), max(finite, default=None))


def one_run(folder: str | PathLike[str], most: int) -> OneRun | None:
    """Return what a directory says; None if it is not there any more.

    Args:
        most: points of a curve.
    """
    try:
        record = RunRecord(folder)
    except UnknownRun:
        return None
    standing, manifest = record.standing(), record.manifest
    return OneRun(
        id=record.id,
        manifest=manifest,
        standing=standing,
        seconds=seconds_taken(manifest, standing, time.time()),
        curves={
            curve.name: thinner(curve, most)
            for group in metrics_info(record, (), None).groups
            for curve in group.curves
        },
        health=_health(HealthRecord(record)),
    )


def _health(record: HealthRecord) -> Health:
    if record.readable() is None:
        return Health("no audit")
    report = record.report()
    faults = faults_of(report)
    word: Word = "healthy" if report.is_healthy() else "not observed"
    if faults:
        word = "sick" if any(one.certainty == "certain" for one in faults) else "suspect"
        # The one that gave the word is told first.
        faults.sort(key=lambda one: one.certainty != "certain")
    return Health(word, tuple(faults[:MOST_FINDINGS]), len(faults), report.n_steps)

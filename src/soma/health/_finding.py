"""What a verdict says: findings, and the row of each unit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from soma.health._measurements import Status, UnitId
from soma.health._thresholds import Thresholds

Certainty = Literal["certain", "likely", "possible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with one unit."""

    flag: str  # `VANISHING`, `DEAD_CHANNELS(4)`, `UNOBSERVED(compiled)`
    unit: UnitId
    since: int  # the first step whose numbers show it
    certainty: Certainty
    why: str  # the numbers that say so
    meaning: str  # for the parts above and below
    help: str  # one concrete change
    numbers: Mapping[str, float] = field(default_factory=dict)
    channels: tuple[int, ...] = ()
    cause: UnitId | None = None  # the unit whose finding brings this one about

    @property
    def name(self) -> str:
        """The flag without what stands in brackets."""
        return self.flag.partition("(")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterReport:
    """The verdict on one unit."""

    filter_id: UnitId
    flags: list[str]
    findings: tuple[Finding, ...]
    status: Status
    n_steps: int
    metrics: Mapping[str, float]  # medians over the last half of the measured steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on all units, worst first in `findings`, causes before consequences."""

    filters: tuple[FilterReport, ...]  # in the order of the first call
    findings: tuple[Finding, ...]
    n_steps: int
    thresholds: Thresholds  # the lines that were drawn
    facts: Mapping[str, Any] = field(default_factory=dict)

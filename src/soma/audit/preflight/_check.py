"""What a check says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["ok", "note", "warning", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question about a model, and its answer."""

    name: str  # `reached`, `first loss`
    outcome: Outcome
    told: str  # the answer, with its numbers
    help: str = ""  # one concrete change, where something is wrong
    numbers: Mapping[str, float] = field(default_factory=dict)

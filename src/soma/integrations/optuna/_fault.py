"""What a study keeps of a sick trial: plain data in the attributes of the trial."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from soma.health import Finding

HEALTH = "soma.health"  # all faults that were found
PRUNED = "soma.pruned"  # the one that ended the trial
RUN = "soma.run"  # the id of its run


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A finding as a study keeps it."""

    flag: str
    node: str | None  # as in a report: `encoder`, `encoder/1`
    since: int
    certainty: str
    why: str

    @classmethod
    def of(cls, finding: Finding) -> "Fault":
        """Return what is kept of a finding."""
        return cls(
            flag=finding.flag,
            node=finding.unit,
            since=finding.since,
            certainty=finding.certainty,
            why=finding.why,
        )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Fault":
        """Return a fault that a study has kept."""
        return cls(**data)

    def data(self) -> dict[str, Any]:
        """Return what a study keeps."""
        return asdict(self)

    @property
    def name(self) -> str:
        """The flag without what stands in brackets."""
        return self.flag.partition("(")[0]

    def __str__(self) -> str:
        at = f" at {self.node}" if self.node else ""
        return f"{self.flag}{at}, since step {self.since}: {self.why}"

"""What is read back from a run directory, as small frozen data."""

from dataclasses import dataclass, field
from typing import Any, Literal

from soma.core import NodeId

State = Literal["running", "completed", "failed", "interrupted", "crashed", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One turn of a node. Times are seconds since the run began."""

    node: NodeId
    phase: str
    start: float
    seconds: float
    cached: bool
    thread: int = 0  # the lowest number that no node had that was running beside it
    error: str | None = None  # the name of what it raised

    @property
    def failed(self) -> bool:
        """Whether it raised."""
        return self.error is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheActivity:
    """How often a node's answer was found, and why it last ran."""

    node: NodeId
    hits: int
    misses: int
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a run was started as."""

    id: str
    name: str
    kind: str
    tags: tuple[str, ...]
    params: dict[str, Any]
    created_at: float  # seconds since 1970
    environment: dict[str, Any] = field(default_factory=dict)

"""What is known of a node's turn in a cached run, and what the turns of one run share.

`_cached.py` takes the turns.
"""

from dataclasses import dataclass, field

from soma.cache import Cache, Identity, Moment, Record
from soma.core import NodeId
from soma.engine._ambient import ambient
from soma.engine._flights import Flights
from soma.engine._held import Given, Held
from soma.engine._keys import Part
from soma.engine._shortcuts import Found

ABSENT = object()


@dataclass(slots=True)
class CachedRun:
    """What the turns of one run share."""

    cache: Cache
    seed: int | None
    reasons: dict[NodeId, str]  # why each node ran, or that it did not
    watches: bool  # the global generators; not while nodes run side by side
    settings: str | None = field(default_factory=ambient)
    moment: Moment = field(default_factory=Moment)
    found: dict[NodeId, Found] = field(default_factory=dict)
    flights: Flights = field(default_factory=Flights)
    _inputs: dict[int, Held] = field(default_factory=dict)

    def hold(self, value: object) -> Held:
        """Hold an input; the same object is hashed once, however many nodes read it."""
        return self._inputs.setdefault(id(value), Held(value))


@dataclass(slots=True)
class Turn:
    """What is known of a node's turn before it runs; filled in step by step."""

    given: Given
    refusal: str | None = None  # why nothing is looked up or kept
    what: Identity | None = None  # the filter
    inputs: dict[NodeId, str] = field(default_factory=dict)  # digests, by where they come from
    targets: str | None = None  # digest of the labels of a fit
    call: tuple[Part, ...] = ()
    base: tuple[Part, ...] = ()  # what every key of this turn is made of
    why: str | None = None  # it has to run
    state_key: str | None = None
    state: object = ABSENT
    state_digest: str | None = None
    key: str | None = None  # of the output
    found: Record | None = None  # under `key`

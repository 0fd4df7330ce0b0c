"""What the engine and the training loop say while they work: frozen data, no calls.

Whoever listens (a progress bar, a run directory, an audit) gets each event once, in order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from soma.core._topology import NodeId

Phase = Literal["build", "fit", "forward", "train"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted:
    """A node begins its turn."""

    node: NodeId
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished:
    """A node has ended its turn, after `seconds`; `cached`: its answer was stored already."""

    node: NodeId
    phase: Phase
    seconds: float
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed:
    """A node raised."""

    node: NodeId
    phase: Phase
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished:
    """An optimizer step was taken; `step` counts from 0."""

    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStarted:
    """`fit` begins to train: what it minimises, and for how long."""

    epochs: int
    steps_per_epoch: int | None
    losses: tuple[tuple[NodeId, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFinished:
    """One pass over the data has ended; losses are means over its rows."""

    epoch: int
    loss: float
    validation_loss: float | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFinished:
    """`fit` has ended its training, also when it was interrupted."""


Event = (
    NodeStarted
    | NodeFinished
    | NodeFailed
    | StepFinished
    | TrainingStarted
    | EpochFinished
    | TrainingFinished
)
Listener = Callable[[Event], None]
Tap = Callable[[NodeId, object], None]


class Watcher(Protocol):
    """Stands around the turns of nodes in training, in the runs that it wants."""

    def wanted(self) -> bool:
        """Whether the run that begins now is to be watched; asked once a run."""
        ...

    def turn(
        self, node: NodeId, function: Callable[[object], object], x: object, *, has_extra: bool
    ) -> object:
        """Return what `function(x)` gives, with `has_extra` a pair of output and extras."""
        ...


class Listeners:
    """Who is told of the events and of the nodes' own outputs; empty means nobody asks."""

    def __init__(self) -> None:
        self.events: list[Listener] = []
        self.taps: list[Tap] = []
        self.watchers: list[Watcher] = []
        self.joined = 0  # listeners so far, those that left included

    def __bool__(self) -> bool:
        return bool(self.events or self.taps)

    def __reduce__(self) -> tuple[type["Listeners"], tuple[()]]:
        # A copy of a graph is watched by nobody, whoever watches the original.
        return Listeners, ()

    def say(self, event: Event) -> None:
        """Hand one event to every listener."""
        for listener in tuple(self.events):
            listener(event)

    def show(self, node: NodeId, value: object) -> None:
        """Hand one node's own output to every tap."""
        for tap in tuple(self.taps):
            tap(node, value)

    @contextmanager
    def listening(
        self,
        listener: Listener | None = None,
        tap: Tap | None = None,
        watcher: Watcher | None = None,
    ) -> Iterator[None]:
        """Listen inside a `with`: events to `listener`, every node's output to `tap`."""
        if listener is not None:
            self.events.append(listener)
            self.joined += 1
        if tap is not None:
            self.taps.append(tap)
        if watcher is not None:
            self.watchers.append(watcher)
        try:
            yield
        finally:
            if listener is not None:
                self.events.remove(listener)
            if tap is not None:
                self.taps.remove(tap)
            if watcher is not None:
                self.watchers.remove(watcher)

"""What all nodes of one run share: `Running`; and the part of it that one flow sees: `Scope`."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from soma.core import Event, NodeId
from soma.errors import JournalMismatch
from soma.flow._budget import Spending
from soma.flow._model import Model
from soma.flow._replay import Replay
from soma.tracking import Journal, JournalLine, Run, Secrets

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._turn import Turn

L = TypeVar("L", bound=JournalLine)
Walk = Callable[["DeclaredFlow", object, "Scope"], object]


class Stopped(Exception):
    """A branch that did not go on, since another one had failed."""


class Running:
    """One run of a flow, or a look at one that has ended, where `run` and `journal` are None.

    Args:
        folder: of the run.
        answers: of people, by place or node.
        side_by_side: the most effects at once.
        on_text: is told which node's model says what, while it comes.
        say: is told of each node's turns.
        walk: runs a flow.
    """

    def __init__(
        self,
        *,
        folder: Path,
        run: Run | None,
        journal: Journal | None,
        replay: Replay,
        secrets: Secrets,
        answers: Mapping[str, object],
        side_by_side: int,
        on_text: Callable[[NodeId, str], None] | None,
        say: Callable[[Event], None],
        walk: Walk,
    ) -> None:
        self.folder = folder
        self.run = run
        self.replay = replay
        self.secrets = secrets
        self.answers = answers
        self.side_by_side = side_by_side
        self.on_text = on_text
        self.say = say
        self.walk = walk
        self._journal = journal
        self._places = threading.BoundedSemaphore(side_by_side)

    def seconds(self) -> float:
        """Return the time of now in the run."""
        return self.replay.seconds if self.run is None else self.run.seconds()

    def log(self, name: str, value: float) -> None:
        """Keep one number."""
        if self.run is not None:
            self.run.log(name, value)

    def write(self, line: L) -> L:
        """Keep an effect before anything else happens; return it as a replay will find it.

        Raises:
            JournalMismatch: the run has ended, and nothing may be added.
        """
        return self._open_journal(line.at).append(line)

    def check_open(self, at: str) -> None:
        """Raise before an effect that could not be kept."""
        self._open_journal(at)

    @contextmanager
    def performing(self, scope: "Scope", at: str) -> Iterator[float]:
        """Have one of the places for effects inside; gives the time at which it began.

        Raises:
            Stopped: another branch has failed.
            BudgetSpent: there is no time left.
        """
        self.check_open(at)
        with self._places:
            if scope.is_stopped():
                raise Stopped
            scope.spending.seconds_left()
            yield self.seconds()

    def _open_journal(self, at: str) -> Journal:
        if self._journal is None:
            raise JournalMismatch(
                f"the run in `{self.folder}` has ended, and its journal does not tell what happens "
                f"at `{at}`. A changed flow is another run: start it with `flow.run(...)`."
            )
        return self._journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A flow that runs within a run: where it stands, what it may use, whether it goes on.

    Args:
        nodes: what comes before the ids of its nodes in the graph of the run, as `judge.again.`.
        at: what comes before the places of its nodes, as `judge/again/3/`.
        model: that nodes without one ask.
        turn: of the node that the flow is a part of.
    """

    running: Running
    nodes: str
    at: str
    model: Model | None
    spending: Spending
    turn: "Turn | None" = None
    stop: threading.Event = field(default_factory=threading.Event)

    def is_stopped(self) -> bool:
        """Whether no effect may begin any more, here or in a flow around."""
        if self.stop.is_set():
            return True
        return self.turn is not None and self.turn.scope.is_stopped()

    def node(self, id: NodeId) -> NodeId:
        """Return a node's id in the graph of the run."""
        return f"{self.nodes}{id}"

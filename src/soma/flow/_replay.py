"""What a run has recorded, so that a flow that walks again finds it: `Replay`."""

from collections.abc import Iterable
from typing import TypeVar

from soma.errors import JournalMismatch
from soma.tracking import (
    AnsweredLine,
    AskedLine,
    BegunLine,
    JournalLine,
    ModelLine,
    RouteLine,
    ToolLine,
    ValueLine,
)

Effect = ModelLine | ToolLine | RouteLine | ValueLine
E = TypeVar("E", ModelLine, ToolLine, RouteLine, ValueLine)

_WORDS = {ModelLine: "a reply", ToolLine: "a call", RouteLine: "a route", ValueLine: "a value"}


class Replay:
    """The lines of a journal by their place; `resumed` if there are any."""

    def __init__(self, lines: Iterable[JournalLine] = ()) -> None:
        self._effects: dict[str, Effect] = {}
        self._asked: dict[str, AskedLine] = {}
        self._answered: dict[str, AnsweredLine] = {}
        self._lost: set[str] = set()
        self.seconds = 0.0  # at which the last one ended
        self.resumed = False
        self.nodes: dict[str, None] = {}  # that have done something, the first first
        for line in lines:
            self.resumed = True
            self._take(line)

    def find(self, at: str, kind: type[E], request: str, node: str) -> E | None:
        """Return the recorded effect at a place; None if it has not happened.

        Raises:
            JournalMismatch: something else was asked there.
        """
        found = self._effects.get(at)
        if found is None:
            return None
        if not isinstance(found, kind):
            raise _mismatch(node, at, f"{_WORDS[type(found)]} is recorded, not {_WORDS[kind]}")
        if found.request != request:
            raise _mismatch(node, at, "something else was asked then")
        return found

    def replies(self, at: str) -> list[ModelLine]:
        """Return the replies that were given within a place."""
        return [
            line
            for place, line in self._effects.items()
            if isinstance(line, ModelLine) and place.startswith(f"{at}/")
        ]

    def question(self, at: str, request: str, node: str) -> AskedLine | None:
        """Return the recorded question at a place.

        Raises:
            JournalMismatch: another one was asked there.
        """
        found = self._asked.get(at)
        if found is not None and found.request != request:
            raise _mismatch(node, at, f"the question was {found.question!r:.200}")
        return found

    def asked(self, at: str) -> AskedLine | None:
        """Return what was asked at a place, whatever it was."""
        return self._asked.get(at)

    def answer(self, at: str) -> AnsweredLine | None:
        """Return the recorded answer at a place."""
        return self._answered.get(at)

    def is_lost(self, at: str) -> bool:
        """Whether a call began at a place of which nobody knows how it ended."""
        return at in self._lost

    def open_questions(self) -> list[AskedLine]:
        """Return the questions without an answer, the oldest first."""
        return [line for at, line in self._asked.items() if at not in self._answered]

    def _take(self, line: JournalLine) -> None:
        self.nodes.setdefault(line.node)
        if isinstance(line, BegunLine):
            self._lost.add(line.at)
        elif isinstance(line, AskedLine):
            self._asked.setdefault(line.at, line)
            # A call that stopped to ask has not been lost; it is made again.
            self._lost.discard(line.at.rpartition("/")[0])
        elif isinstance(line, AnsweredLine):
            self._answered[line.at] = line
        else:
            self._effects.setdefault(line.at, line)
            self._lost.discard(line.at)
        start = getattr(line, "start", 0.0)
        self.seconds = max(self.seconds, start + getattr(line, "seconds", 0.0))


def _mismatch(node: str, at: str, what: str) -> JournalMismatch:
    return JournalMismatch(
        f"the node `{node}` does not go on as its journal tells: at `{at}` {what}. A changed flow "
        "is another run: start it with `flow.run(...)`, or resume with the flow as it was."
    )

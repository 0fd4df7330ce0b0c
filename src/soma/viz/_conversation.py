"""What took place in a flow, in its order: messages, replies, calls of tools, routes, answers.

`_usage.py` counts it, `report/sections/_conversation.py` shows it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import json

from soma.core import Message, NodeId, ToolCall, Usage
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

Kind = Literal["message", "reply", "call", "route", "question", "answer", "value"]
Outcome = Literal["ok", "error", "refused", "unknown", "truncated", "not taken", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEntry:
    """One thing that was said or done in a flow. Times are seconds since the run began."""

    kind: Kind
    at: str  # its place among all of the run, `tune/2/call_1`
    node: NodeId
    turn: int | None  # of the node, from 1; None where it has no turns
    who: str  # `system` or `user`; the model, tool or node that it is from; `person`
    text: str  # what was said or observed; of a route its label, of a value how it is shown
    outcome: Outcome = "ok"
    problem: str = ""  # why a reply was not taken
    calls: tuple[ToolCall, ...] = ()  # of tools, that a reply wants
    call: ToolCall | None = None  # that this entry answers
    labels: tuple[str, ...] = ()  # of a condition, all of them
    where: str | None = None  # the file that was read or written
    usage: Usage = field(default_factory=Usage)
    start: float
    seconds: float | None = None  # None: it took no time of its own


def conversation(journal: Iterable[JournalLine]) -> list[ConversationEntry]:
    """Return what took place, in the order in which it was written down.

    What a model was told again, as its own replies and what came of them, stands there once.
    """
    lines = [*journal]
    reading = _Reading(lines)
    return [entry for line in lines for entry in reading.entries(line)]


class _Reading:
    """Goes through a journal once, and knows what it has told."""

    def __init__(self, lines: Sequence[JournalLine]) -> None:
        self._ended = {line.at for line in lines if isinstance(line, ToolLine)}
        # A call that stopped to ask is made again.
        self._ended |= {line.at.rpartition("/")[0] for line in lines if isinstance(line, AskedLine)}
        self._answered = {line.at for line in lines if isinstance(line, AnsweredLine)}
        self._last: dict[NodeId, ModelLine] = {}  # turn of a node
        self._calls: set[tuple[NodeId, str]] = set()

    def entries(self, line: JournalLine) -> Iterator[ConversationEntry]:
        """Give what a line adds."""
        if isinstance(line, ModelLine):
            for message in line.messages:
                if not self._is_told(line.node, message):
                    yield _message(line, message)
            self._last[line.node] = line
            yield _reply(line)
        elif isinstance(line, ToolLine):
            self._calls.add((line.node, line.call.id))
            yield _called(line)
        elif isinstance(line, RouteLine):
            yield _route(line)
        elif isinstance(line, AskedLine):
            yield _question(line, answered=line.at in self._answered)
        elif isinstance(line, AnsweredLine):
            yield _answer(line)
        elif isinstance(line, ValueLine):
            yield _value(line)
        elif line.at not in self._ended:
            yield _begun(line)

    def _is_told(self, node: NodeId, message: Message) -> bool:
        if message.role == "tool":
            return (node, message.call_id) in self._calls
        last = self._last.get(node)
        if last is None:
            return False
        if message.role == "user":  # why its last reply was not taken
            return message.text == last.problem
        return message.role == "assistant" and (message.text, message.calls) == (
            last.reply.text,
            last.reply.calls,
        )


def _message(line: ModelLine, message: Message) -> ConversationEntry:
    return ConversationEntry(
        kind="message", at=line.at, node=line.node, turn=line.turn, who=message.role,
        text=message.text, calls=message.calls, start=line.start,
    )  # fmt: skip


def _reply(line: ModelLine) -> ConversationEntry:
    reply = line.reply
    outcome: Outcome = "ok" if line.problem is None else "not taken"
    if reply.stop in ("refusal", "length"):
        outcome = "refused" if reply.stop == "refusal" else "truncated"
    return ConversationEntry(
        kind="reply", at=line.at, node=line.node, turn=line.turn, who=reply.model or "model",
        text=reply.text, outcome=outcome, problem=line.problem or "", calls=reply.calls,
        usage=reply.usage, start=line.start, seconds=line.seconds,
    )  # fmt: skip


def _called(line: ToolLine) -> ConversationEntry:
    return ConversationEntry(
        kind="call", at=line.at, node=line.node, turn=line.turn, who=line.call.name,
        text=line.observation, outcome=line.outcome, call=line.call, start=line.start,
        seconds=line.seconds,
    )  # fmt: skip


def _begun(line: BegunLine) -> ConversationEntry:
    return ConversationEntry(
        kind="call", at=line.at, node=line.node, turn=None, who="tool", outcome="unknown",
        text="It was begun, and nothing is known of its end.", start=0.0,
    )  # fmt: skip


def _route(line: RouteLine) -> ConversationEntry:
    return ConversationEntry(
        kind="route", at=line.at, node=line.node, turn=None, who=line.node, text=line.label,
        labels=line.labels, start=line.start, seconds=line.seconds,
    )  # fmt: skip


def _question(line: AskedLine, *, answered: bool) -> ConversationEntry:
    return ConversationEntry(
        kind="question", at=line.at, node=line.node, turn=None, who=line.node,
        text=line.question, outcome="ok" if answered else "open", start=line.start,
    )  # fmt: skip


def _answer(line: AnsweredLine) -> ConversationEntry:
    return ConversationEntry(
        kind="answer", at=line.at, node=line.node, turn=None, who="person",
        text=_told(line.answer), start=line.start,
    )  # fmt: skip


def _value(line: ValueLine) -> ConversationEntry:
    return ConversationEntry(
        kind="value", at=line.at, node=line.node, turn=None, who=line.action, text=line.shown,
        where=line.where, start=line.start, seconds=line.seconds,
    )  # fmt: skip


def _told(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.encode(answer).decode()

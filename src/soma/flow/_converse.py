"""Talks with a model until it gives an answer that can be used: what LLM and Agent share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from soma.core import Message, Reply, ToolCall, ToolSpec
from soma.errors import NoAnswer, SchemaMismatch
from soma.flow._asked import Asked
from soma.flow._model import Options
from soma.flow._schema import Schema
from soma.flow._shown import sendable

if TYPE_CHECKING:
    from soma.flow._turn import Turn

_MOST_CALLS = 32  # of one reply
_UNFIT = "Your answer does not fit what is wanted. "
_AGAIN = " Give the whole answer again."
_TOO_MANY = (
    f"This call was not made: a reply may have {_MOST_CALLS} calls. Make those that you still need."
)

Answer = Callable[[Reply], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a node asks its model.

    Args:
        model: a model, the name of one, or None for the flow's own.
        repairs: how often a model may try again whose answer does not fit.
    """

    model: object
    temperature: float | None
    most_tokens: int | None
    repairs: int


@dataclass(frozen=True, slots=True)
class Final:
    """An answer that fits, as a text or as the value that its schema makes of it."""

    value: object


class Conversation:
    """Messages with one model, each kept in the journal once.

    Args:
        part: of the node that talks, where it has several conversations.
    """

    def __init__(
        self, turn: "Turn", manner: Manner, messages: Sequence[Message], part: str = ""
    ) -> None:
        self._turn = turn
        self._model, name = turn.model(manner.model)
        self._options = Options(
            name=name, temperature=manner.temperature, most_tokens=manner.most_tokens
        )
        self._messages = [*messages]
        self._known = 0
        self._part = part
        self._repairs = manner.repairs
        self.turns = 0

    def next(self, schema: Schema | None, tools: tuple[ToolSpec, ...] = ()) -> Reply | Final:
        """Return the next reply, with calls to make, or the answer that is final.

        A reply that does not fit is repaired: then the model is told why, and asked again by the
        next call of this.

        Raises:
            NoAnswer: there is none, and there will be none.
        """
        problem: str | None = None
        value: object = None

        def judged(reply: Reply) -> str | None:
            nonlocal problem, value
            problem, value = _judged(reply, schema, calls_wanted=bool(tools))
            return problem

        self.turns += 1
        asked = Asked(
            messages=self._messages,
            known=self._known,
            tools=tools,
            schema=None if schema is None else schema.json,
            options=self._options,
        )
        reply = self._turn.ask_model(
            self._model, asked, turn=self.turns, problem=judged, part=self._part
        )
        judged(reply)  # also where it is recorded, and without the secrets it held
        self._known = len(self._messages)
        self._messages.append(Message(role="assistant", text=reply.text, calls=reply.calls))
        if problem is None:
            return reply if reply.calls else Final(value)
        final = reply.stop in ("refusal", "length")
        if final or not self._repairs:
            raise NoAnswer(self._told(reply, problem))
        self._repairs -= 1
        self._messages.append(Message(role="user", text=problem))
        return reply

    def observe(self, calls: Sequence[ToolCall], observations: Sequence[str]) -> None:
        """Tell the model what came of its calls."""
        self._messages += [
            Message(role="tool", text=text, call_id=call.id)
            for call, text in zip(calls, observations, strict=True)
        ]

    def _told(self, reply: Reply, problem: str) -> str:
        node = self._turn.node
        if reply.stop == "refusal":
            return (
                f"the model of `{node}` refused: {reply.text!r:.500}. Word the prompt in another "
                "way, or ask another model, in a new run."
            )
        if reply.stop == "length":
            return (
                f"the reply to `{node}` was cut after {reply.usage.output_tokens:,} tokens: "
                f"{reply.text[-200:]!r}. Give the node more `most_tokens`, or ask for less, in a "
                "new run."
            )
        return (
            f"the model of `{node}` gave no answer that fits, in {self.turns} "
            f"turn{'' if self.turns == 1 else 's'}. The last one: "
            f"{problem.removeprefix(_UNFIT).removesuffix(_AGAIN)} Give the node more `repairs` and "
            "call `flow.resume(...)`, or say in the prompt what is wanted, in a new run."
        )


def only_answer(talk: Conversation, schema: Schema | None) -> object:
    """Return the answer of a model that gets no tools."""
    while True:
        found = talk.next(schema)
        if isinstance(found, Final):
            return found.value


def calls_of(reply: Reply) -> tuple[tuple[ToolCall, ...], tuple[ToolCall, ...]]:
    """Return the calls of a reply that are made, and those that are too many."""
    return reply.calls[:_MOST_CALLS], reply.calls[_MOST_CALLS:]


def too_many(calls: Sequence[ToolCall]) -> list[str]:
    """Return what a model is told of calls that are too many."""
    return [_TOO_MANY] * len(calls)


def as_schema(schema: object) -> Schema | None:
    """Return a schema of what stands for one."""
    return schema if schema is None or isinstance(schema, Schema) else Schema(schema)


def opening(instructions: str | None, text: str) -> list[Message]:
    """Return the first messages of a conversation."""
    first = [Message(role="system", text=sendable(instructions))] if instructions else []
    return [*first, Message(role="user", text=text)]


def _judged(
    reply: Reply, schema: Schema | None, *, calls_wanted: bool
) -> tuple[str | None, object]:
    """Return why a reply cannot be taken, and else the value that it is."""
    if reply.stop == "refusal":
        return "It is a refusal.", None
    if reply.calls and calls_wanted:  # those that are cut off are refused one by one
        return None, None
    if reply.stop == "length":
        return "It was cut off.", None
    if reply.calls:
        return "You called tools, and there are none here. Answer in words.", None
    if schema is None:
        return None, reply.text
    try:
        return None, schema.parse(reply.text)
    except SchemaMismatch as error:
        return f"{_UNFIT}{error}{_AGAIN}", None

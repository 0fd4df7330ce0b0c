"""The lines of `journal.jsonl`: each effect of a flow, written once it has happened.

`at` names an effect among all of its run, from the node inwards: `tune/2/model`, `tune/2/call_1`,
`judge/again/3/route`. `request` is the digest of what was asked, so that a run that goes on notices
when its flow now asks something else. `node` is the id in the graph of the run. Times are seconds
since the run began.
"""

from typing import Any, Literal

from msgspec import Struct

from soma.core import Message, Reply, ToolCall


class ModelLine(Struct, frozen=True, tag_field="effect", tag="model", omit_defaults=True):
    """A model was asked, and replied."""

    at: str
    request: str
    node: str
    turn: int  # of the node, from 1
    known: int  # messages of the conversation that the line before of it holds already
    messages: tuple[Message, ...]  # those after them
    reply: Reply
    start: float
    seconds: float
    tools: tuple[str, ...] = ()  # the names that it was offered
    problem: str | None = None  # why the reply was not taken, as a text that fits no schema


class BegunLine(Struct, frozen=True, tag_field="effect", tag="begun"):
    """A tool that may be called only once is about to be."""

    at: str
    node: str


class ToolLine(Struct, frozen=True, tag_field="effect", tag="tool", omit_defaults=True):
    """A tool was called, or its call refused; the model gets `observation`."""

    at: str
    request: str
    node: str
    turn: int
    call: ToolCall
    outcome: Literal["ok", "error", "refused", "unknown"]
    observation: str
    start: float
    seconds: float
    value: Any = None  # that a node of the flow gives on, as in a `ValueLine`
    blob: str | None = None


class RouteLine(Struct, frozen=True, tag_field="effect", tag="route"):
    """A condition chose one of its labels."""

    at: str
    request: str
    node: str
    label: str
    labels: tuple[str, ...]
    start: float
    seconds: float


class AskedLine(Struct, frozen=True, tag_field="effect", tag="asked"):
    """A person is wanted: the run stands still until there is an answer."""

    at: str
    request: str
    node: str
    question: str
    start: float


class AnsweredLine(Struct, frozen=True, tag_field="effect", tag="answered"):
    """A person answered."""

    at: str
    node: str
    answer: Any  # plain JSON
    start: float


class ValueLine(Struct, frozen=True, tag_field="effect", tag="value", omit_defaults=True):
    """A value was read, written, computed, or given by a node."""

    at: str
    request: str
    node: str
    action: Literal["read", "write", "fit", "forward", "input", "output"]
    start: float
    seconds: float
    shown: str  # for people, shortened
    where: str | None = None  # the file that was read or written
    value: Any = None  # plain JSON, where it is that
    blob: str | None = None  # else the file of the run's directory that holds it


JournalLine = ModelLine | BegunLine | ToolLine | RouteLine | AskedLine | AnsweredLine | ValueLine

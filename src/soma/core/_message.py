"""What is said in a conversation with a language model, as data: messages, calls, replies.

The nodes of `soma.flow` send and receive these; the journal of a run keeps them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Stop = Literal["end", "calls", "length", "refusal"]  # why a model stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that a model wants called; `arguments` is the text it wrote, of JSON or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing said; `calls` are an assistant's, `call_id` names the call a tool answers."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The tokens that a reply cost."""

    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered: a text, calls of tools, or a refusal with its reason as the text."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"
    usage: Usage = Usage()
    model: str = ""  # which one answered, as it names itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model is told of it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]

"""What every language model looks like to a flow: `Model`, one method, asked with `Options`.

`_openai_model.py` talks to a server; `soma.testing.ScriptedModel` says what a test wrote.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from soma.core import Message, Reply, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one reply is wanted; None leaves a choice to the model.

    Args:
        name: which model replies, in place of the one that it was made for.
        temperature: 0 for the likeliest words, more for less likely ones.
        most_tokens: the length at which a reply is cut.
        seconds: the time for the whole call, with all its tries.
        on_text: gets the text piece by piece as it comes, on the thread that asked.
    """

    name: str | None = None
    temperature: float | None = None
    most_tokens: int | None = None
    seconds: float | None = None
    on_text: Callable[[str], None] | None = None


@runtime_checkable
class Model(Protocol):
    """What replies to a conversation."""

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        schema: Mapping[str, object] | None,
        options: Options,
    ) -> Reply:
        """Return what comes next in a conversation.

        Args:
            messages: the conversation so far, oldest first.
            tools: what the model may want called.
            schema: the JSON schema that the text of the reply should fit.
            options: how the reply is wanted.

        Raises:
            ModelError: there is none; a `ModelTimeout` where it took too long, and a
                `ModelUnavailable` where asking again later may help.
        """
        ...

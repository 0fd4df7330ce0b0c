"""`Asked`: what a model is asked, as the journal knows it again, and the reply to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import json, to_builtins

from soma.core import Message, NodeId, Reply, ToolSpec
from soma.errors import InvalidInput, ModelError, ModelTimeout
from soma.files import LONGEST_LINE
from soma.flow._budget import Spending
from soma.flow._model import Model, Options
from soma.flow._shown import sendable


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a model is asked: the conversation so far, of which the journal knows `known`."""

    messages: Sequence[Message]
    known: int
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, object] | None = None
    options: Options = field(default_factory=Options)

    def request(self) -> dict[str, object]:
        """Return what counts of it: a resumed run has to ask the same."""
        return {
            "messages": to_builtins(self.messages),
            "tools": to_builtins(self.tools),
            "schema": to_builtins(self.schema),
            "name": self.options.name,
            "temperature": self.options.temperature,
            "most_tokens": self.options.most_tokens,
        }


def reply_to(
    asked: Asked,
    model: Model,
    node: NodeId,
    spending: Spending,
    on_text: Callable[[NodeId, str], None] | None,
) -> Reply:
    """Return a model's reply, in the time that is left; `on_text` is told of it as it comes.

    Raises:
        BudgetSpent: there is none left.
        ModelError: there is no reply.
    """
    told = None if on_text is None else partial(on_text, node)
    given = replace(asked.options, seconds=spending.seconds_left(), on_text=told)
    try:
        reply = model.complete(tuple(asked.messages), asked.tools, asked.schema, given)
    except ModelTimeout:
        spending.seconds_left()  # says whose time it was, if it was the budget's
        raise
    if not isinstance(reply, Reply):
        raise ModelError(
            f"the model of `{node}` gave a `{type(reply).__name__}`; its `complete` has "
            "to return a `soma.core.Reply`."
        )
    return reply


def check_length(node: NodeId, messages: Sequence[Message]) -> None:
    """Refuse to say to a model what no journal could keep.

    Raises:
        InvalidInput: it is too much.
    """
    texts = [text for one in messages for text in (one.text, *(c.arguments for c in one.calls))]
    size = sum(len(json.encode(sendable(text))) for text in texts)
    if size > LONGEST_LINE // 2:
        raise InvalidInput(
            f"`{node}` would say {size:,} bytes to its model; {LONGEST_LINE // 2:,} are the most "
            "at once. Put less into its prompt, such as a summary or the path of a file."
        )

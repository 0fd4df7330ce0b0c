"""`Asked`: what a model is asked, as a turn hands it over and the journal knows it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import to_builtins

from soma.core import Message, ToolSpec
from soma.flow._model import Options


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

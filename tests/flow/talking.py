"""What tests of flows have in common: replies with calls, and a model that must not be asked."""

import json
from typing import Any

from soma.core import Reply, ToolCall, Usage


def calling(*calls: tuple[str, dict[str, Any]], tokens: int = 0) -> Reply:
    """Return a reply that wants tools called, with their arguments."""
    made = tuple(
        ToolCall(id=f"id_{number}", name=name, arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(calls, 1)
    )
    return Reply(calls=made, stop="calls", usage=Usage(output_tokens=tokens))


class NoModel:
    """A model that nobody may ask."""

    def complete(self, messages: Any, tools: Any, schema: Any, options: Any) -> Reply:
        """Fail."""
        raise AssertionError(f"a model was asked: {messages}")

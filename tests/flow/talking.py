"""What tests of flows have in common: what models and graphs in them say, and where runs are."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from soma import Filter
from soma.core import Reply, ToolCall, Usage


def calling(*calls: tuple[str, dict[str, Any]], tokens: int = 0) -> Reply:
    """Return a reply that wants tools called, with their arguments."""
    made = tuple(
        ToolCall(id=f"id_{number}", name=name, arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(calls, 1)
    )
    return Reply(calls=made, stop="calls", usage=Usage(output_tokens=tokens))


def told(messages: Any) -> str:
    """Answer with the last message."""
    return str(messages[-1].text)


def only_run(folder: Path) -> Path:
    """Return the directory of the only run below a folder."""
    (run,) = (folder / "runs").iterdir()
    return run


class Shift(Filter):
    """Learns a mean and takes it away."""

    def fit(self, x: Any, y: object = None) -> object:
        """Return the mean."""
        return float(np.mean(x))

    def forward(self, x: Any, state: Any) -> Any:
        """Return the rest."""
        return np.asarray(x) - state


class NoModel:
    """A model that nobody may ask."""

    def complete(self, messages: Any, tools: Any, schema: Any, options: Any) -> Reply:
        """Fail."""
        raise AssertionError(f"a model was asked: {messages}")

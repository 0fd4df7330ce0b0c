"""A flow as one node of another flow."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from soma.flow._node import FlowNode

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._turn import Turn


class Nested(FlowNode):
    """A flow in another one, with its own model and budget if it has them."""

    kind = "flow"
    hands_over = True

    def __init__(self, flow: "DeclaredFlow") -> None:
        self.flow = flow
        self._called = flow.name

    def run(self, value: object, turn: "Turn") -> object:
        """Return what the flow gives."""
        return turn.inside(self.flow, value)

    def parts(self) -> Mapping[str, "DeclaredFlow"]:
        """Return the flow."""
        return {"": self.flow}

    def with_parts(self, parts: Mapping[str, "DeclaredFlow"]) -> None:
        """Take another flow in its place."""
        self.flow = parts[""]

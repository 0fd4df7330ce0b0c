"""`FlowNode`: what every node of a flow is; `_turn.py` says what it can do in its turn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from soma.core import Filter, NodeId, Phase
from soma.errors import ModeError

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._turn import Turn


class FlowNode(Filter):
    """One step of a flow: `run` gets a value and gives one, by asking models and calling tools.

    What is outside of Python's own computing goes through the turn, which keeps it in the journal.
    A node of your own:

    >>> from soma.flow import Flow, FlowNode
    >>> class Upper(FlowNode):
    ...     def run(self, value, turn):
    ...         return value.upper()
    >>> from tempfile import mkdtemp
    >>> Flow.somatize(Upper()).run("a", root=mkdtemp()).output
    'A'
    """

    _kind = "opaque"
    _cacheable = False
    _orchestrates = True

    kind: ClassVar[str] = "node"  # what it is, for pictures
    phase: Phase = "forward"

    # Whether what it gives comes out of one of its parts.
    hands_over: ClassVar[bool] = False

    def run(self, value: object, turn: "Turn") -> object:
        """Return what this node gives for `value`.

        Args:
            value: what the predecessors give; `{predecessor_id: value}` where several do.
            turn: asks models, calls tools, and keeps what comes of it.
        """
        raise NotImplementedError(f"`{type(self).__name__}` does not define `run(value, turn)`.")

    def parts(self) -> Mapping[str, "DeclaredFlow"]:
        """Return the flows inside of this node by name; the name "" adds nothing to their ids."""
        return {}

    def with_parts(self, parts: Mapping[str, "DeclaredFlow"]) -> None:
        """Take these flows in place of its own, in a copy that nobody has seen yet."""

    def needs_model(self) -> bool:
        """Whether it asks a model and has none of its own."""
        return False

    def missing(self, given: frozenset[str]) -> list[str]:
        """Return the fields that it reads from a mapping and that are not among `given`."""
        return []

    def gives(self) -> frozenset[str] | None:
        """Return the names in the mapping that it gives: none for a text, None if unknown."""
        return None

    def forward(self, x: object, state: object) -> object:
        """Refuse to run in a graph.

        Raises:
            ModeError: always.
        """
        raise ModeError(
            f"`{type(self).__name__}` stands in a graph; it runs in a flow. Make one with "
            "`soma.Flow.somatize(...)`."
        )


def part_prefix(id: NodeId, part: str) -> str:
    """Return what the ids of nodes in a part begin with, `judge.again.`; see `FlowNode.parts`."""
    return f"{id}.{part}." if part else f"{id}."

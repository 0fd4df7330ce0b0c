"""What a plan is made of: a small frozen tree.

`_arrange.py` grows one from the steps of a graph; `_plan.py` holds it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from soma.core import NodeId


@dataclass(frozen=True, slots=True)
class Execute:
    """Run one node on what `inputs` gave, or on the graph's own input where there are none."""

    node: NodeId
    inputs: tuple[NodeId, ...]
    differentiable: bool
    uncached: str | None  # why the output is never stored; None: it may be

    @property
    def cacheable(self) -> bool:
        """Whether the output may be stored."""
        return self.uncached is None


@dataclass(frozen=True, slots=True)
class Sequence:
    """Run the parts one after the other."""

    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """Run the parts in any order, or at once: none reads another."""

    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Composite:
    """A sequence of which every node is differentiable."""

    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing to run."""


Part = Execute | Sequence | Parallel | Composite | Empty


def executes(part: Part) -> Iterator[Execute]:
    """Every `Execute` of a tree, from first to last as it is drawn."""
    pending = [part]
    while pending:
        part = pending.pop()
        if isinstance(part, Execute):
            yield part
        elif not isinstance(part, Empty):
            pending += reversed(part.parts)

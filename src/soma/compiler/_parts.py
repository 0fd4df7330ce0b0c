"""What a plan is made of: a small frozen tree.

`_arrange.py` grows one from the steps of a graph; `_plan.py` holds it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

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
class Remote:
    """Run the parts on the worker named `target`."""

    target: str
    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing to run."""


Part = Execute | Sequence | Parallel | Composite | Remote | Empty


def executes(part: Part) -> Iterator[Execute]:
    """Every `Execute` of a tree, from first to last as it is drawn."""
    pending = [part]
    while pending:
        part = pending.pop()
        if isinstance(part, Execute):
            yield part
        elif not isinstance(part, Empty):
            pending += reversed(part.parts)


def placed(part: Part, targets: Mapping[NodeId, str]) -> Part:
    """Return the tree with every node that has a target in a `Remote`; its depth is bounded."""
    if isinstance(part, Execute):
        target = targets.get(part.node)
        return part if target is None else Remote(target, (part,))
    if isinstance(part, Empty) or not targets:
        return part
    return replace(part, parts=tuple(placed(one, targets) for one in part.parts))

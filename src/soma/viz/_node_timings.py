"""How long each node took in a run, over all its turns."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from soma.core import NodeId
from soma.tracking import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTiming:
    """All turns of one node; times are seconds."""

    node: NodeId
    calls: int
    seconds: float  # of all turns
    mean: float
    longest: float
    cached: int  # turns that were answered from the cache
    failed: int


def node_timings(timings: Iterable[Timing]) -> list[NodeTiming]:
    """Return what each node took, in the order of their first turns."""
    turns: dict[NodeId, list[Timing]] = {}
    for one in sorted(timings, key=lambda one: one.start):
        turns.setdefault(one.node, []).append(one)
    return [_summed(node, ones) for node, ones in turns.items()]


def steps_timed(timings: Iterable[Timing]) -> int:
    """Return at how many steps of a training the nodes were timed; most steps are not."""
    return max(Counter(one.node for one in timings if one.phase == "train").values(), default=0)


def _summed(node: NodeId, turns: list[Timing]) -> NodeTiming:
    seconds = sum(one.seconds for one in turns)
    return NodeTiming(
        node=node,
        calls=len(turns),
        seconds=seconds,
        mean=seconds / len(turns),
        longest=max(one.seconds for one in turns),
        cached=sum(one.cached for one in turns),
        failed=sum(one.failed for one in turns),
    )

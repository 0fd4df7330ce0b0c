"""Links lead from the roots to the leaves and never back."""

from collections import deque
from collections.abc import Iterator

from soma.compiler._facts import Facts
from soma.core import Diagnostic, Label, NodeId

_MOST_SHOWN = 8


def cycles(facts: Facts) -> list[Diagnostic]:
    """An error for each group of nodes that wait for each other, naming one short way round."""
    return [_error(cycle) for cycle in _cycles(facts)]


def _cycles(facts: Facts) -> Iterator[list[NodeId]]:
    successors = facts.wiring.successors
    stuck = [node for node in facts.topology.nodes if node not in facts.positions]
    for node in stuck:
        if node in successors[node]:
            yield [node]
    for group in _knots(stuck, facts):
        if len(group) > 1:
            yield _way_round(group, facts)


def _knots(stuck: list[NodeId], facts: Facts) -> Iterator[set[NodeId]]:
    """Yield the largest sets in which every node reads every other one at some distance.

    A node is closed when all it leads to has been seen. Taken from the last closed to the
    first, each node gathers what leads to it and has no set yet.
    """
    seen: set[NodeId] = set()
    closed: list[NodeId] = []
    for start in stuck:
        pending = [(start, False)]
        while pending:
            node, done = pending.pop()
            if done:
                closed.append(node)
            elif node not in seen:
                seen.add(node)
                pending.append((node, True))
                pending += [(target, False) for target in facts.wiring.successors[node]]
    grouped: set[NodeId] = set()
    for start in reversed(closed):
        group: set[NodeId] = set()
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in grouped:
                grouped.add(node)
                group.add(node)
                # What a stuck node reads in `order` is no part of any cycle.
                sources = facts.wiring.predecessors[node]
                waiting += [one for one in sources if one not in facts.positions]
        if group:
            yield group


def _way_round(group: set[NodeId], facts: Facts) -> list[NodeId]:
    """Return the shortest cycle through the node of the group that was declared first."""
    start = next(node for node in facts.topology.nodes if node in group)
    came: dict[NodeId, NodeId] = {}
    queue = deque([start])
    while start not in came:
        node = queue.popleft()
        for target in facts.wiring.successors[node]:
            if target in group and target not in came and target != node:
                came[target] = node
                queue.append(target)
    way = [start]
    while (node := came[way[-1]]) != start:
        way.append(node)
    return [start, *reversed(way[1:])]


def _error(cycle: list[NodeId]) -> Diagnostic:
    shown = [*cycle, cycle[0]]
    if len(shown) > _MOST_SHOWN:
        shown[_MOST_SHOWN - 2 : -1] = ["…"]
    return Diagnostic(
        level="error",
        code="cycle",
        node=cycle[0],
        message=f"`{' → '.join(shown)}` runs in a circle; no node may read what it leads to",
        labels=tuple(Label(node=node, role="fault") for node in cycle),
        help="Take out one of these links. To repeat a step, call `g.forward` in a loop.",
    )

"""Where gradients stop: the cuts of a graph, judged along its links.

A node passes gradients on when its filter is differentiable. It gets some when a way of such
nodes leads from it to a leaf. Filters that are not differentiable and linked to each other make
one run; each run is one cut. `checks/_gradient.py` puts a cut into words.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from soma.compiler._facts import Facts
from soma.core import NodeId

_MOST_WAYS = 3  # next nodes that are named on a way that stays open
_LINKS_AGAIN = 32  # links walked again above a node that an earlier cut has named


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A run of nodes that pass no gradients, and what that does to the nodes around it.

    Everything is in topological order. `path` is one short way through the run, `inside` the
    half-open range of it that belongs to the run.
    """

    run: tuple[NodeId, ...]
    path: tuple[NodeId, ...]
    inside: tuple[int, int]
    cut_off: tuple[NodeId, ...]  # get no gradient from any leaf, and this run is one reason
    reached: tuple[tuple[NodeId, tuple[NodeId, ...]], ...]  # get one, through these next nodes
    restarts: tuple[NodeId, ...]  # directly below, and get gradients
    leaves: tuple[NodeId, ...]  # nodes of the run that are leaves of the graph
    at_root: bool  # nothing differentiable above
    at_leaf: bool  # nothing differentiable below


def cuts(facts: Facts) -> list[Cut]:
    """Return the cuts with something differentiable on at least one side."""
    flow = _Flow(facts)
    found = (flow.cut(run) for run in flow.runs())
    return [cut for cut in found if not (cut.at_root and cut.at_leaf)]


class _Flow:
    """One pass over a graph; the work is linear in its nodes and links."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.successors = facts.wiring.successors
        self.predecessors = facts.wiring.predecessors
        self.passes = {node: meta.differentiable for node, meta in facts.metas.items()}
        self.reached: dict[NodeId, bool] = {}
        for node in reversed(facts.wiring.order):
            below = self.successors[node]
            self.reached[node] = self.passes[node] and (
                not below or any(self.reached[target] for target in below)
            )
        self._named: set[NodeId] = set()
        self._ways: dict[NodeId, tuple[NodeId, ...]] = {}

    def runs(self) -> Iterator[list[NodeId]]:
        """Yield the groups of linked nodes that pass no gradients, by their first node."""
        grouped: set[NodeId] = set()
        for start in self.facts.wiring.order:
            if self.passes[start] or start in grouped:
                continue
            grouped.add(start)
            run = [start]
            for node in run:  # grows while it is walked
                for near in (*self.predecessors[node], *self.successors[node]):
                    if not self.passes[near] and near not in grouped:
                        grouped.add(near)
                        run.append(near)
            yield self._sorted(run)

    def cut(self, run: list[NodeId]) -> Cut:
        """Return what one run does to the nodes around it."""
        above = [one for node in run for one in self.predecessors[node] if self.passes[one]]
        below = [one for node in run for one in self.successors[node] if self.passes[one]]
        cut_off, reached = self._above(above)
        path, inside = self._path(run)
        return Cut(
            run=tuple(run),
            path=path,
            inside=inside,
            cut_off=tuple(cut_off),
            reached=tuple((node, self._ways_from(node)) for node in reached),
            restarts=tuple(self._sorted({one for one in below if self.reached[one]})),
            leaves=tuple(node for node in run if not self.successors[node]),
            at_root=not above,
            at_leaf=not below,
        )

    def _above(self, start: list[NodeId]) -> tuple[list[NodeId], list[NodeId]]:
        """Walk up from a run: the nodes that it cuts off, and the first ones that it does not.

        Every node that is cut off is named by some cut. Above a node that an earlier cut has
        named the walk is short, or many cuts under one long chain would name it all each time.
        """
        walk = list(dict.fromkeys(start))
        seen = set(walk)
        again = 0
        cut_off, reached = [], []
        for node in walk:  # grows while it is walked
            if self.reached[node]:
                reached.append(node)
                continue
            cut_off.append(node)
            sources = self.predecessors[node]
            if node in self._named:
                again += len(sources)
                if again > _LINKS_AGAIN:
                    continue
            self._named.add(node)
            for source in sources:
                if self.passes[source] and source not in seen:
                    seen.add(source)
                    walk.append(source)
        return self._sorted(cut_off), self._sorted(reached)

    def _path(self, run: list[NodeId]) -> tuple[tuple[NodeId, ...], tuple[int, int]]:
        """Return a shortest way from above the run, through it, to below it.

        It begins at a node that is cut off and ends at one where gradients restart, where there
        are such nodes and a way between them.
        """
        before: dict[NodeId, NodeId | None] = self._entries(run)
        queue = deque(before)
        ends: dict[int, tuple[NodeId, NodeId | None]] = {}  # by rank: the best end has the least
        while queue and 0 not in ends:
            node = queue.popleft()
            rank, after = self._end(node)
            ends.setdefault(rank, (node, after))
            for target in self.successors[node]:
                if not self.passes[target] and target not in before:
                    before[target] = node
                    queue.append(target)
        last, after = ends[min(ends)]
        way = [last]
        while (one := before.get(way[-1])) is not None:
            way.append(one)
        way.reverse()
        begin = int(self.passes[way[0]])
        inside = (begin, len(way))
        return (*way, *([after] if after is not None else [])), inside

    def _entries(self, run: list[NodeId]) -> dict[NodeId, NodeId | None]:
        """Map the nodes where ways enter the run to what they come from; None at a root."""
        entries: dict[NodeId, NodeId | None] = {}
        best = 2
        for node in run:
            for source in self.predecessors[node]:
                if self.passes[source]:
                    rank = int(self.reached[source])
                    if rank < best:
                        entries, best = {}, rank
                    if rank == best:
                        entries.setdefault(node, source)
        return entries or {node: None for node in run if not self.predecessors[node]}

    def _end(self, node: NodeId) -> tuple[int, NodeId | None]:
        """Return how well a way may end after `node`, and with what; 0 is best."""
        below = [one for one in self.successors[node] if self.passes[one]]
        for one in below:
            if self.reached[one]:
                return 0, one
        if below:
            return 1, below[0]
        return (3 if self.successors[node] else 2), None

    def _ways_from(self, node: NodeId) -> tuple[NodeId, ...]:
        if node not in self._ways:
            open_ways = (target for target in self.successors[node] if self.reached[target])
            self._ways[node] = tuple(islice(open_ways, _MOST_WAYS))
        return self._ways[node]

    def _sorted(self, nodes: "list[NodeId] | set[NodeId]") -> list[NodeId]:
        return sorted(nodes, key=self.facts.positions.__getitem__)

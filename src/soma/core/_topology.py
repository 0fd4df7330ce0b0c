"""The nodes of a graph and the links between them.

A `Topology` takes whatever is declared, in any order; `wiring()` resolves it, and the
compiler says what is wrong with it. Node order is the order of declaration wherever
the links leave a choice.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from soma.core._expression import (
    Chain,
    Composable,
    Foreign,
    Fork,
    Placed,
    checked_target,
)
from soma.core._filter import Filter
from soma.draw import printable
from soma.errors import InvalidNodeId, InvalidTarget, NotAFilter, UnknownNode, did_you_mean, listing

NodeId = str
Link = tuple[NodeId, NodeId]


@dataclass(frozen=True, slots=True)
class Node:
    """A filter with its name in one graph, and the worker it runs on; None: here."""

    id: NodeId
    filter: Filter
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """A topology resolved: who reads whom, and in which order nodes may run.

    `order` leaves out the nodes of a cycle and what comes after them. Links that name an
    unknown node and repeated links are left out of both maps.
    """

    order: tuple[NodeId, ...]
    predecessors: Mapping[NodeId, tuple[NodeId, ...]]
    successors: Mapping[NodeId, tuple[NodeId, ...]]

    @property
    def roots(self) -> tuple[NodeId, ...]:
        """The nodes that read the graph's own input."""
        return tuple(node for node in self.order if not self.predecessors[node])

    @property
    def leaves(self) -> tuple[NodeId, ...]:
        """The nodes whose output is the graph's own."""
        return tuple(node for node in self.order if not self.successors[node])


class Inlined(Composable):
    """A whole graph that stands in an expression: its nodes keep their ids, after a prefix."""

    __slots__ = ("name", "states", "topology")

    def __init__(self, name: str, topology: "Topology", states: Mapping[NodeId, object]) -> None:
        self.name = name
        self.topology = topology
        self.states = states


class Topology:
    """The declared nodes and links; `version` grows with every declaration.

    Args:
        adopt: makes a filter of an estimator of another library.
        enclose: makes one node of a graph, whose nodes are else taken in one by one.
    """

    def __init__(
        self,
        adopt: Callable[[object], Filter] | None = None,
        enclose: Callable[[Composable], Filter] | None = None,
    ) -> None:
        self._adopt = adopt
        self._enclose = enclose
        self.nodes: dict[NodeId, Node] = {}
        self.version = 0
        self._links: list[Link] = []
        # What the name of an inlined graph stands for: as a target, as a source.
        self.groups: dict[NodeId, tuple[tuple[NodeId, ...], tuple[NodeId, ...]]] = {}
        self._next_suffix: dict[str, int] = {}
        self._wiring: tuple[int, Wiring] | None = None

    @property
    def links(self) -> list[Link]:
        """The links between nodes, as declared.

        The name of an inlined graph stands for its leaves as a source, for its roots as a target.
        """
        if not self.groups:
            return self._links
        roots = {name: entries for name, (entries, _) in self.groups.items()}
        leaves = {name: exits for name, (_, exits) in self.groups.items()}
        return [
            (one, other)
            for source, target in self._links
            for other in roots.get(target, (target,))
            for one in leaves.get(source, (source,))
        ]

    def add(self, filter: Filter, id: NodeId | None = None, target: str | None = None) -> NodeId:
        """Declare a node and return its id, `snake_case` of the class unless given."""
        called = filter._called or type(filter).__name__
        name = self._free_id(snake_case(called)) if id is None else self._checked(id)
        self.nodes[name] = Node(name, filter, target)
        self.version += 1
        return name

    def add_expression(self, expression: Composable) -> dict[NodeId, object]:
        """Declare a whole expression; return the states that inlined graphs brought along."""
        states: dict[NodeId, object] = {}
        ends: list[tuple[list[NodeId], list[NodeId]]] = []  # (entries, exits) of finished parts
        # Walked with a stack of our own: a chain of 10,000 nodes is a tree that deep.
        pending: list[tuple[Composable, bool]] = [(expression, False)]
        while pending:
            part, parts_done = pending.pop()
            if isinstance(part, Chain) and not parts_done:
                pending += [(part, True), (part.right, False), (part.left, False)]
            elif isinstance(part, Chain):
                (entries, left_exits), (right_entries, exits) = ends[-2:]
                self._links += [(left, right) for right in right_entries for left in left_exits]
                ends[-2:] = [(entries, exits)]
            elif isinstance(part, Fork) and not parts_done:
                pending += [(part, True), *((one, False) for one in reversed(part.parts))]
            elif isinstance(part, Fork):
                (entries, exits), *others = ends[-len(part.parts) :]
                for more_entries, more_exits in others:
                    entries += more_entries
                    exits += more_exits
                ends[-len(part.parts) :] = [(entries, exits)]
            elif self._is_one_node(part):
                filter, target = self._own(part)
                name = self.add(filter, target=target)
                ends.append(([name], [name]))
            else:
                ends.append(self._add_graph(part, None, states)[1:])
        self.version += 1
        return states

    def declare(
        self, part: Composable, id: NodeId | None, target: str | None = None
    ) -> tuple[NodeId, dict[NodeId, object]]:
        """Declare a filter as a node, or a graph's nodes as `id.inner`.

        Returns the id, and the states that an inlined graph brought along.

        Raises:
            InvalidTarget: no worker can have this name, or it is given to a whole graph.
        """
        if self._is_one_node(part):
            filter, own = self._own(part)
            return self.add(filter, id, own if target is None else checked_target(target)), {}
        if target is not None:
            raise InvalidTarget(
                f"a graph was placed at {target!r}; filters are placed one by one, inside it: "
                '`Encoder().at("worker1")`.'
            )
        states: dict[NodeId, object] = {}
        return self._add_graph(part, id, states)[0], states

    def take(self, other: "Topology", filters: Mapping[NodeId, Filter]) -> None:
        """Declare the nodes and links of another topology, with other filters."""
        self.nodes = {id: replace(node, filter=filters[id]) for id, node in other.nodes.items()}
        self._links = list(other._links)
        self.groups = dict(other.groups)
        self._next_suffix = dict(other._next_suffix)
        self.version += 1

    def connect(self, source: NodeId, target: NodeId) -> None:
        """Declare that `target` reads `source`; either may be declared later."""
        for end in (source, target):
            if not isinstance(end, str):
                raise InvalidNodeId(
                    f"a link joins the ids of two nodes; got {end!r}. `g.node` returns the id."
                )
        self._links.append((source, target))
        self.version += 1

    def node(self, id: NodeId) -> Node:
        """Return one node.

        Raises:
            UnknownNode: there is none of that id.
        """
        if id not in self.nodes:
            has = listing(self.nodes) or "no nodes yet"
            raise UnknownNode(
                f"no node `{id}` in this graph; it has {has}.{did_you_mean(str(id), self.nodes)}"
            )
        return self.nodes[id]

    def wiring(self) -> Wiring:
        """Resolve the links; the answer is kept until the next declaration."""
        if self._wiring is None or self._wiring[0] != self.version:
            self._wiring = (self.version, _resolve(self))
        return self._wiring[1]

    def __iter__(self) -> Iterator[Node]:
        """The nodes in topological order."""
        return (self.nodes[node] for node in self.wiring().order)

    def _is_one_node(self, part: Composable) -> bool:
        if isinstance(part, Filter | Foreign | Placed):
            return True
        return self._enclose is not None and not isinstance(part, Chain | Fork)

    def _own(self, part: Composable) -> tuple[Filter, str | None]:
        if isinstance(part, Placed):
            assert isinstance(part.filter, Filter)
            return part.filter, part.target
        if isinstance(part, Filter):
            return part, None
        if self._enclose is not None:
            return self._enclose(part), None
        assert isinstance(part, Foreign)
        if self._adopt is None:
            raise NotAFilter(f"{part!r} is no filter; `soma.sk` makes one of it.")
        return self._adopt(part.value), None

    def _add_graph(
        self, part: Composable, id: NodeId | None, states: dict[NodeId, object]
    ) -> tuple[NodeId, list[NodeId], list[NodeId]]:
        inlined = part.inlined()
        if not isinstance(inlined, Inlined):
            raise NotAFilter(
                f"a `{type(part).__name__}` cannot be one node; a filter or a graph is wanted. "
                "Make a graph of an expression with `Graph.somatize(expression)`."
            )
        inner = inlined.topology
        if not inner.nodes:
            raise NotAFilter(
                f"the graph `{inlined.name}` has no nodes, so nothing can be linked through it. "
                "Declare its nodes first."
            )
        prefix = self._checked(self._free_id(inlined.name, inner.nodes) if id is None else id)

        def within(*names: NodeId) -> tuple[NodeId, ...]:
            return tuple(f"{prefix}.{name}" for name in names)

        # All ids are checked before the first node is declared: an error changes nothing.
        ids = [self._checked(name) for name in within(*inner.nodes)]
        wiring = inner.wiring()
        entries, exits = within(*wiring.roots), within(*wiring.leaves)
        self._links += [(f"{prefix}.{one}", f"{prefix}.{other}") for one, other in inner.links]
        self.groups |= {
            f"{prefix}.{name}": (within(*first), within(*last))
            for name, (first, last) in inner.groups.items()
        }
        self.groups[prefix] = entries, exits
        self.nodes |= {
            id: replace(node, id=id) for id, node in zip(ids, inner.nodes.values(), strict=True)
        }
        states |= {f"{prefix}.{node}": state for node, state in inlined.states.items()}
        self.version += 1
        return prefix, list(entries), list(exits)

    def _checked(self, id: NodeId) -> NodeId:
        if not isinstance(id, str) or not id:
            raise InvalidNodeId(f"a node id is a non-empty string; got {id!r}.")
        refused = sorted({char for char in id if _refused(char)})
        if refused:
            raise InvalidNodeId(
                f"node id {id!r} holds {', '.join(map(repr, refused))}; ids may hold anything but "
                "`/`, `[`, `]` and control characters."
            )
        if self._taken(id):
            raise InvalidNodeId(f"there is a node `{id}` already; give this one another id.")
        return id

    def _free_id(self, name: str, inside: Iterable[NodeId] = ()) -> NodeId:
        """Return `name`, `name_2` and so on: the first that is free, with what comes inside it."""
        suffix = self._next_suffix.get(name, 1)
        while self._taken(id := name if suffix == 1 else f"{name}_{suffix}") or any(
            self._taken(f"{id}.{one}") for one in inside
        ):
            suffix += 1
        self._next_suffix[name] = suffix + 1
        return id

    def _taken(self, id: NodeId) -> bool:
        return id in self.nodes or id in self.groups


def snake_case(name: str) -> str:
    """Return `LoadText` as `load_text`, `SQLQuery` as `sql_query`, `Conv2d` as `conv2d`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    allowed = "".join("_" if _refused(char) or char.isspace() else char for char in spaced)
    return re.sub("__+", "_", allowed).strip("_").lower() or "node"


def _refused(char: str) -> bool:
    # Joiners are not seen either, but words of many languages and some emoji are made with them.
    return char in "/[]" or not (printable(char) or char in "\u200c\u200d")


def _resolve(topology: Topology) -> Wiring:
    position = {node: index for index, node in enumerate(topology.nodes)}
    predecessors: dict[NodeId, dict[NodeId, None]] = {node: {} for node in position}
    successors: dict[NodeId, dict[NodeId, None]] = {node: {} for node in position}
    for source, target in topology.links:
        if source in position and target in position:
            predecessors[target][source] = None
            successors[source][target] = None

    waiting = {node: len(sources) for node, sources in predecessors.items()}
    ready = [position[node] for node, count in waiting.items() if not count]
    heapify(ready)
    names = list(position)
    order = []
    while ready:
        node = names[heappop(ready)]
        order.append(node)
        for target in successors[node]:
            waiting[target] -= 1
            if not waiting[target]:
                heappush(ready, position[target])
    return Wiring(
        order=tuple(order),
        predecessors={node: tuple(sources) for node, sources in predecessors.items()},
        successors={node: tuple(targets) for node, targets in successors.items()},
    )

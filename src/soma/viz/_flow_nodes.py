"""What is particular to the nodes of a flow in a picture: what they are, and what stands in them.

A part of a node, as a case of a condition, is a frame; the ids of what is in it begin with those of
the node and of the part: `judge.again.fix`.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from soma.core import NodeId
from soma.draw import Arrow, Badge, Group, counted
from soma.tracking import GraphRecord

_TIMES = "\N{MULTIPLICATION SIGN}"
_BADGES = {
    "llm": Badge(text="✎ LLM", ink="accent"),
    "agent": Badge(text="↻ agent", ink="accent"),
    "condition": Badge(text="◆ condition", ink="muted"),
    "loop": Badge(text="⟲ loop", ink="muted"),
    "tool": Badge(text="ƒ tool", ink="muted"),
    "io": Badge(text="⇅ IO", ink="muted"),
    "computation": Badge(text="Σ graph", ink="muted"),
    "flow": Badge(text="▣ flow", ink="muted"),
}


class Within(NamedTuple):
    """Where a node stands: in a part of another one."""

    node: NodeId
    part: str  # the label of a case; "" for the body of a loop

    @property
    def key(self) -> str:
        """The key of its frame."""
        return f"{self.node}.{self.part}"

    def short(self, node: NodeId) -> str:
        """Return the id of a node in it without what the frame says already."""
        return node.removeprefix(f"{self.node}.").removeprefix(f"{self.part}.")


def kind_badge(kind: str) -> Badge | None:
    """Return what kind of node of a flow it is, as a word with a sign; None for other nodes."""
    return _BADGES.get(kind)


def nesting(record: GraphRecord) -> dict[NodeId, Within]:
    """Return in which part of which node each nested node of a flow stands."""
    holders = {node.id for node in record.nodes if node.kind in _BADGES or node.kind == "node"}
    found = {}
    for node in record.nodes:
        head, dot, _ = node.id.rpartition(".")
        while dot and head not in holders:
            head, dot, _ = head.rpartition(".")
        if dot or head in holders:
            inside = node.id[len(head) + 1 :]
            found[node.id] = Within(head, inside.rpartition(".")[0])
    return found


def frames(places: Mapping[NodeId, Within]) -> Iterator[Group]:
    """Give a frame for each part that holds a node."""
    for place in dict.fromkeys(places.values()):
        around = places.get(place.node)
        yield Group(
            key=place.key,
            title=f"{place.node} · {place.part}" if place.part else place.node,
            parent=None if around is None else around.key,
        )


def ways_in(
    record: GraphRecord,
    places: Mapping[NodeId, Within],
    routes: Mapping[NodeId, Mapping[str, int]],
) -> Iterator[Arrow]:
    """Give the arrows of a graph, and those from a node into its parts, with the part's name."""
    seen = set(record.edges)
    entered = {target for source, target in record.edges if _same(places, source, target)}
    inner = [
        (place.node, node)
        for node, place in places.items()
        if node not in entered and (place.node, node) not in seen
    ]
    cases: dict[NodeId, set[str]] = {}
    for within in places.values():
        if within.part:
            cases.setdefault(within.node, set()).add(within.part)
    for source, target in (*record.edges, *inner):
        place = places.get(target)
        taken = routes.get(source, {})
        if place is None or place.node != source:
            past = taken if source in cases else {}
            rest = {label: times for label, times in past.items() if label not in cases[source]}
            yield Arrow(
                source=source,
                target=target,
                label=_ways_past(rest) if source in cases else "",
                dashed=bool(rest) and not any(rest.values()),
            )
            continue
        yield Arrow(
            source=source,
            target=target,
            label=_way_said(place.part, taken),
            dashed=bool(taken) and not taken.get(place.part, 1),
        )


def routes_said(routes: Mapping[str, int]) -> str:
    """Return how often each label of a condition was chosen."""
    return " · ".join(f"{label} {_TIMES}{times:,}" for label, times in routes.items() if times)


def _way_said(part: str, taken: Mapping[str, int]) -> str:
    """Return how often the way into a part was gone; into the body of a loop once a round."""
    if not part:
        return counted(sum(taken.values()), "round") if taken else ""
    times = taken.get(part)
    if times is None:
        return part
    return f"{part} {_TIMES}{times:,}" if times else f"{part}: not taken"


def _ways_past(taken: Mapping[str, int]) -> str:
    """Return how often the ways past all parts were gone, which give the value on."""
    if not taken:
        return "otherwise"
    return routes_said(taken) or f"{', '.join(taken)}: not taken"


def _same(places: Mapping[NodeId, Within], source: NodeId, target: NodeId) -> bool:
    return places.get(source) == places.get(target)

"""The graph with what happened to each node, and beside it the numbers of each."""

from collections.abc import Iterator
from typing import NamedTuple

from soma.draw import Badge, counted
from soma.tracking import NodeRecord
from soma.viz._durations import duration
from soma.viz._flow_nodes import routes_said
from soma.viz._graph_picture import UNNOTED, badges, graph_svg
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill, picture
from soma.viz.report._section import Section

_WHOLE = 800  # nodes; of more, the picture says that it draws several as one
_LISTED = 1_000  # nodes


class Fact(NamedTuple):
    """One line about a node."""

    name: str
    value: str
    mark: str = ""  # `code`, `bad`


class Node(NamedTuple):
    """What the page tells of one node."""

    id: str
    class_name: str
    doc: str
    badges: tuple[Badge, ...]
    time: str
    share: float  # of the time of the slowest
    facts: tuple[Fact, ...]
    config: dict[str, str]


def graph_section(facts: Facts) -> Section | None:
    """Return the graph and its nodes; None where a run has none."""
    graph = facts.graph
    if graph is None or not graph.nodes:
        return None
    slowest = max((one.seconds for one in facts.timings.values()), default=0.0)
    count = len(graph.nodes)
    left_out = []
    if count > _WHOLE:
        left_out.append(f"The picture of the graph draws its {count:,} nodes as fewer boxes.")
    if count > _LISTED:
        left_out.append(f"{_LISTED:,} of {count:,} nodes are listed; the data holds all.")
    return Section(
        key="graph",
        title="Graph",
        count=counted(count, "node"),
        body=fill(
            "graph.jinja",
            drawing=picture(graph_svg(graph, facts.notes)),
            nodes=[_node(node, facts, slowest) for node in graph.nodes[:_LISTED]],
        ),
        left_out=tuple(left_out),
    )


def _node(node: NodeRecord, facts: Facts, slowest: float) -> Node:
    timing = facts.timings.get(node.id)
    frozen = bool(node.parameters) and not node.trainable
    return Node(
        id=node.id,
        class_name=node.class_name,
        doc=node.doc,
        badges=badges(facts.notes.get(node.id, UNNOTED), frozen=frozen),
        time="" if timing is None else duration(timing.seconds),
        share=0.0 if timing is None or not slowest else timing.seconds / slowest,
        facts=tuple(_facts(node, facts)),
        config=node.config,
    )


def _facts(node: NodeRecord, facts: Facts) -> Iterator[Fact]:
    timing, looked = facts.timings.get(node.id), facts.activity.get(node.id)
    if timing is not None and timing.failed:
        said = next((one.error for one in reversed(facts.turns) if one.node == node.id), None)
        error = facts.standing.error or ""
        known = bool(said) and error.startswith(str(said))
        yield Fact("error", error if known else said or "it raised", "bad")
    if timing is None and facts.turns:
        yield Fact("calls", "none: it did not run")
    if timing is not None:
        yield Fact("calls", f"{timing.calls:,}")
        yield Fact("seconds", f"{duration(timing.seconds)} in all")
        if timing.calls > 1:
            yield Fact("", f"{duration(timing.mean)} a call, {duration(timing.longest)} at most")
    note = facts.notes.get(node.id, UNNOTED)
    if note.turns:
        yield Fact("model", note.turns)
    if note.routes:
        yield Fact("routes", routes_said(note.routes))
    if looked is not None:
        yield Fact("cached", f"{looked.hits:,} of {looked.hits + looked.misses:,} look-ups")
        if looked.why:
            yield Fact("why it ran", looked.why)
    yield Fact("kind", node.kind)
    if node.parameters is not None:
        trainable = node.trainable or 0
        said = "all train" if trainable == node.parameters else f"{trainable:,} train"
        yield Fact("parameters", f"{node.parameters:,}, {said}" if node.parameters else "none")

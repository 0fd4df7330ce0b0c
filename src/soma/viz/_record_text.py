"""A recorded graph, or the inside of a module, as lines of text: a node each, and what it reads."""

from collections.abc import Iterable, Iterator, Mapping

from soma.core import ModuleFlow, NodeId
from soma.draw import printable
from soma.tracking import GraphRecord, NodeRecord
from soma.viz._durations import duration
from soma.viz._flow_nodes import kind_badge, routes_said
from soma.viz._flow_picture import shape_text
from soma.viz._graph_picture import UNNOTED, NodeNote

_SAID = {"hit": "from the cache", "mixed": "partly from the cache"}


def record_text(record: GraphRecord, notes: Mapping[NodeId, NodeNote]) -> str:
    """Return the nodes in the order in which they run, as `id (Class) ← inputs  notes`."""
    reads = _reads(record.edges)
    lines = [printable(record.name)]
    for node in record.nodes:
        said = ", ".join(_said(notes.get(node.id, UNNOTED)))
        line = f"{node.id} ({_called(node)}){reads.get(node.id, '')}  {said}"
        lines.append(f"  {printable(line).rstrip()}")
    return "\n".join(lines)


def flow_text(flow: ModuleFlow) -> str:
    """Return the calls inside a module in their order, as `path (Label) ← inputs  shape`."""
    reads = _reads((edge.source, edge.target) for edge in flow.edges)
    lines = [printable(f"{flow.node} ({flow.class_name})")]
    for node in flow.nodes:
        line = f"{node.id} ({node.label}){reads.get(node.id, '')}  {shape_text(node)}"
        lines.append(f"  {printable(line).rstrip()}")
    lines += (
        printable(f"  no gradient from {edge.source} to {edge.target}: {edge.cut}")
        for edge in flow.edges
        if edge.cut
    )
    return "\n".join(lines)


def _reads(edges: Iterable[tuple[str, str]]) -> dict[str, str]:
    inputs: dict[str, list[str]] = {}
    for source, target in edges:
        inputs.setdefault(target, []).append(source)
    return {target: f" ← {', '.join(sources)}" for target, sources in inputs.items()}


def _called(node: NodeRecord) -> str:
    """Return a node's class, and of a class of one's own in a flow what kind of node it is."""
    kind = node.kind if kind_badge(node.kind) is not None else ""
    return (
        node.class_name if kind in ("", node.class_name.lower()) else f"{node.class_name}, {kind}"
    )


def _said(note: NodeNote) -> Iterator[str]:
    if note.status in ("failed", "not run"):
        yield note.status
    if note.waits:
        yield "waits for an answer"
    if note.turns:
        yield note.turns
    if note.routes:
        yield routes_said(note.routes)
    if note.seconds is not None:
        yield duration(note.seconds)
    if note.cached in _SAID:
        yield _SAID[note.cached]
    yield from note.flags

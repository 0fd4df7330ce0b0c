"""The picture of a graph: what each node is, and what happened to it in a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from soma.core import NodeId
from soma.draw import Badge, Box, Diagram, Ink, Sample, amount, counted, diagram_picture, svg
from soma.health import NEUTRAL
from soma.tracking import GraphRecord, NodeRecord
from soma.viz._durations import duration
from soma.viz._flow_nodes import Within, frames, kind_badge, nesting, routes_said, ways_in


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNote:
    """What a run says of one node, or of one submodule."""

    seconds: float | None = None
    cached: Literal["hit", "miss", "mixed"] | None = None
    status: Literal["ran", "failed", "not run"] | None = None
    flags: tuple[str, ...] = ()  # `VANISHING`, the worst first
    why: str = ""  # a sentence or more, for the tooltip
    turns: str = ""  # of a model, and its tokens
    routes: Mapping[str, int] = field(default_factory=dict)  # of a condition, by label
    waits: bool = False  # for a person


UNNOTED = NodeNote()
_FAULT = "▲"


def graph_svg(record: GraphRecord, notes: Mapping[NodeId, NodeNote] | None = None) -> str:
    """Return a graph as SVG, its nodes annotated with what happened."""
    return svg(diagram_picture(graph_diagram(record, notes or {})))


def graph_diagram(record: GraphRecord, notes: Mapping[NodeId, NodeNote]) -> Diagram:
    """Return a graph as boxes and arrows; the key of a box is the id of its node."""
    places = nesting(record)
    boxes = tuple(
        _box(node, notes.get(node.id, UNNOTED), places.get(node.id)) for node in record.nodes
    )
    routes = {node: note.routes for node, note in notes.items()}
    return Diagram(
        title=record.name,
        subtitle=_subtitle(record, notes),
        boxes=boxes,
        arrows=tuple(ways_in(record, places, routes)),
        groups=tuple(frames(places)),
        legend=tuple(_legend(record, boxes)),
    )


def weights(parameters: int, trainable: int) -> str:
    """Return how many parameters there are, and how many of them train when not all do."""
    if trainable in (0, parameters):
        return f"{amount(parameters)} θ"
    return f"{amount(parameters)} θ, {amount(trainable)} train"


def badges(note: NodeNote, *, frozen: bool) -> tuple[Badge, ...]:
    """Return what a run says of a node as words, each with a sign of its own."""
    found = []
    if note.status == "failed":
        found.append(Badge(text="✕ failed", ink="bad"))
    if note.status == "not run":
        found.append(Badge(text="○ not run", ink="muted"))
    if note.waits:
        found.append(Badge(text="■ waits for an answer", ink="warning"))
    found += map(flag_badge, note.flags)
    if note.cached == "hit":
        found.append(Badge(text="● from cache", ink="cached"))
    if note.cached == "mixed":
        found.append(Badge(text="◐ partly from cache", ink="cached"))
    if frozen:
        found.append(Badge(text="■ frozen", ink="muted"))
    return tuple(found)


def outline(note: NodeNote, otherwise: Ink) -> Ink:
    """Return the ink of a box's border: that of the worst that is known of it."""
    if note.status == "failed":
        return "bad"
    return "warning" if note.waits or any(map(_is_fault, note.flags)) else otherwise


def flag_badge(flag: str) -> Badge:
    """Return a flag of health as a word with a sign; what was not observed is no fault."""
    if _is_fault(flag):
        return Badge(text=f"{_FAULT} {flag}", ink="warning")
    return Badge(text=f"? {flag}", ink="muted")


def _is_fault(flag: str) -> bool:
    return flag.partition("(")[0] not in NEUTRAL


def _box(node: NodeRecord, note: NodeNote, place: Within | None) -> Box:
    parameters, trainable = node.parameters or 0, node.trainable or 0
    measured = [weights(parameters, trainable)] if parameters else []
    measured += [note.turns] if note.turns else []
    if note.seconds is not None:
        measured.append(duration(note.seconds))
    there = () if node.target is None else (Badge(text=f"⇄ on {node.target}", ink="muted"),)
    kind = kind_badge(node.kind)
    said = f"{node.class_name} · {node.kind}"
    if kind is not None:  # a class of one's own has a name of its own
        said = "" if node.class_name.lower() == node.kind else node.class_name
    lines = [said, " · ".join(measured), routes_said(note.routes)]
    return Box(
        key=node.id,
        title=node.id if place is None else place.short(node.id),
        lines=tuple(filter(None, lines)),
        badges=(
            *([] if kind is None else [kind]),
            *badges(note, frozen=parameters > 0 and not trainable),
            *there,
        ),
        stroke=outline(note, "accent" if node.has_module or node.kind == "trainable" else "line"),
        dashed=note.status == "not run",
        tooltip="\n".join(_told(node, note)),
        group=None if place is None else place.key,
    )


def _told(node: NodeRecord, note: NodeNote) -> Iterator[str]:
    yield f"{node.id}: {node.class_name}, {node.kind}"
    if node.target is not None:
        yield f"runs on {node.target}"
    if node.doc:
        yield node.doc
    if node.parameters:
        yield f"{node.parameters:,} parameters, {node.trainable or 0:,} of them train"
    for name, value in node.config.items():
        yield f"{name} = {value}"
    if note.seconds is not None:
        yield f"took {duration(note.seconds)}"
    if note.cached == "miss":
        yield "computed, not found in the cache"
    if note.why:
        yield note.why


def _subtitle(record: GraphRecord, notes: Mapping[NodeId, NodeNote]) -> str:
    said = [counted(len(record.nodes), "node")]
    parameters = sum(node.parameters or 0 for node in record.nodes)
    if parameters:
        said.append(f"{amount(parameters)} parameters")
    seconds = [note.seconds for note in notes.values() if note.seconds is not None]
    if seconds:
        said.append(f"{duration(sum(seconds))} in nodes")
    return " · ".join(said)


def _legend(record: GraphRecord, boxes: tuple[Box, ...]) -> Iterator[Sample]:
    strokes = {box.stroke for box in boxes}
    if "accent" in strokes:
        yield Sample(text="learns from data", ink="accent")
    if any(badge.text.startswith(_FAULT) for box in boxes for badge in box.badges):
        yield Sample(text="health flag", ink="warning")
    if "bad" in strokes:
        yield Sample(text="failed", ink="bad")
    if any(box.dashed for box in boxes):
        yield Sample(text="not run", ink="line", dashed=True)

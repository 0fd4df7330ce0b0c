"""The picture of a module's inside, as it was executed."""

from collections.abc import Iterator, Mapping

from soma.core import FlowEdge, FlowNode, ModuleFlow
from soma.draw import Arrow, Box, Diagram, Group, Sample, amount, counted, diagram_picture, svg
from soma.viz._graph_picture import UNNOTED, NodeNote, badges, outline, weights


def flow_svg(flow: ModuleFlow, notes: Mapping[str, NodeNote] | None = None) -> str:
    """Return the inside of a module as SVG.

    Args:
        notes: by the path of a submodule, a container's or a leaf's.
    """
    return svg(diagram_picture(flow_diagram(flow, notes or {})))


def flow_diagram(flow: ModuleFlow, notes: Mapping[str, NodeNote]) -> Diagram:
    """Return the inside of a module as boxes, arrows, and a frame for each container."""
    frames = _frames(flow, notes)
    boxes = tuple(_box(node, notes.get(node.path, UNNOTED), frames) for node in flow.nodes)
    return Diagram(
        title=f"{flow.node} · {flow.class_name}",
        subtitle=_subtitle(flow),
        boxes=boxes,
        arrows=tuple(map(_arrow, flow.edges)),
        groups=tuple(_group(path, frames, notes.get(path, UNNOTED)) for path in sorted(frames)),
        legend=tuple(_legend(flow, boxes)),
    )


def shape_text(node: FlowNode) -> str:
    """Return the shape of what a call gave, `96×32`; nothing where it has none."""  # noqa: RUF002
    return "×".join(map(str, node.shape or ()))  # noqa: RUF001


def _frames(flow: ModuleFlow, notes: Mapping[str, NodeNote]) -> set[str]:
    """Return the paths of the containers that hold two things or more, or that have a note."""
    leaves = {node.path for node in flow.nodes if node.kind == "module"}
    held: dict[str, set[str]] = {}
    for node in flow.nodes:
        held.setdefault(_around(node), set()).add(node.id)
    for path in sorted(held, key=lambda path: -path.count(".")):
        while path:
            path, inside = path.rpartition(".")[0], path
            held.setdefault(path, set()).add(inside)
    held.pop("", None)
    return {path for path, inside in held.items() if len(inside) > 1 or path in notes} - leaves


def _around(node: FlowNode) -> str:
    return node.path if node.kind != "module" else node.path.rpartition(".")[0]


def _nearest(path: str, frames: set[str]) -> str | None:
    while path and path not in frames:
        path = path.rpartition(".")[0]
    return path or None


def _group(path: str, frames: set[str], note: NodeNote) -> Group:
    return Group(
        key=path,
        title=path,
        parent=_nearest(path.rpartition(".")[0], frames),
        badges=badges(note, frozen=False),
        tooltip=note.why,
    )


def _box(node: FlowNode, note: NodeNote, frames: set[str]) -> Box:
    group = _nearest(_around(node), frames)
    shape = shape_text(node)
    seldom = [_share(node.share)] if node.share < 1 else []
    told = [f"{node.id}: {node.label}", node.detail, f"output {shape}" if shape else ""]
    tooltip = "\n".join(line for line in [*told, *seldom, note.why] if line)
    if node.kind != "module":
        title = node.label if node.kind == "operation" else " ".join([node.label, shape]).strip()
        title = " · ".join([title, *seldom])
        return Box(key=node.id, title=title, small=True, tooltip=tooltip, group=group)
    sized = [weights(node.parameters, node.trainable)] if node.parameters else []
    line = " · ".join([node.label, *sized, *([shape] if shape else []), *seldom])
    return Box(
        key=node.id,
        title=node.id,
        lines=(line,),
        badges=badges(note, frozen=node.parameters > 0 and not node.trainable),
        stroke=outline(note, "accent" if node.trainable else "line"),
        tooltip=tooltip,
        group=group,
    )


def _arrow(edge: FlowEdge) -> Arrow:
    said = [f"✂ {edge.cut}"] if edge.cut else []
    if edge.share < 1:
        said.append(_share(edge.share))
    return Arrow(
        source=edge.source,
        target=edge.target,
        label=" · ".join(said),
        ink="bad" if edge.cut else "line",
        dashed=edge.cut is not None,
        tooltip=f"no gradient passes here: {edge.cut}" if edge.cut else "",
    )


def _share(share: float) -> str:
    percent = share * 100
    text = "<1" if 0 < percent < 1 else ">99" if 99 < percent < 100 else f"{percent:.0f}"
    return f"{text} % of calls"


def _subtitle(flow: ModuleFlow) -> str:
    called = {node.path for node in flow.nodes if node.kind == "module"}
    modules, calls = counted(len(called), "submodule"), counted(flow.calls, "call")
    said = [f"{amount(flow.parameters)} parameters in {modules}", f"{calls} traced"]
    if 0 < flow.trainable < flow.parameters:
        said.insert(1, f"{amount(flow.trainable)} train")
    if flow.parameters and not flow.trainable:
        said.insert(1, "all frozen")
    return " · ".join([*said, *([flow.note] if flow.note else [])])


def _legend(flow: ModuleFlow, boxes: tuple[Box, ...]) -> Iterator[Sample]:
    strokes = {box.stroke for box in boxes}
    if "accent" in strokes:
        yield Sample(text="has weights that train", ink="accent")
    if any(box.small for box in boxes):
        yield Sample(text="operation", ink="line", small=True)
    if "warning" in strokes:
        yield Sample(text="health flag", ink="warning")
    if any(edge.cut for edge in flow.edges):
        yield Sample(text="✂ no gradient passes", ink="bad", dashed=True, arrow=True)

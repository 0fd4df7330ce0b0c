"""Graphs and inner flows to draw, among them those of the multimodal example."""

from soma.core._module_flow import FlowEdge, FlowKind, FlowNode, ModuleFlow
from soma.tracking._graph_record import GraphRecord, NodeRecord
from tests.draw.diagrams import HOSTILE


def node(name: str, *, kind: str = "stateless", parameters: int | None = None) -> NodeRecord:
    """Return a node whose class is named as it is."""
    return NodeRecord(
        id=name,
        class_name=name.title().replace("_", ""),
        kind=kind,
        has_module=parameters is not None,
        parameters=parameters,
        trainable=parameters,
        config={"seed": "0"},
        doc="Does something.",
    )


PIPELINE = GraphRecord(
    name="pipeline",
    nodes=(
        node("load_audio"),
        node("mfcc", kind="trainable"),
        node("load_text"),
        node("embed", kind="opaque"),
        node("fuse"),
        node("backbone", kind="trainable", parameters=8224),
        node("clf_head"),
        node("reg_head"),
    ),
    edges=(
        ("load_audio", "mfcc"),
        ("load_text", "embed"),
        ("mfcc", "fuse"),
        ("embed", "fuse"),
        ("fuse", "backbone"),
        ("backbone", "clf_head"),
        ("backbone", "reg_head"),
    ),
)
HOSTILE_GRAPH = GraphRecord(
    name=HOSTILE[0],
    nodes=tuple(node(name) for name in HOSTILE),
    edges=((HOSTILE[0], HOSTILE[4]), (HOSTILE[4], HOSTILE[2])),
)


def step(
    name: str,
    label: str,
    *,
    kind: FlowKind = "module",
    parameters: int = 0,
    trainable: int | None = None,
    share: float = 1.0,
) -> FlowNode:
    """Return one call inside a module."""
    return FlowNode(
        id=name,
        kind=kind,
        label=label,
        path=name.partition("#")[0] if kind == "module" else "",
        parameters=parameters,
        trainable=parameters if trainable is None else trainable,
        shape=(96, 32),
        detail="",
        share=share,
    )


def flow(nodes: list[FlowNode], edges: list[FlowEdge], *, note: str | None = None) -> ModuleFlow:
    """Return the inside of a module from its calls."""
    return ModuleFlow(
        node="encoder",
        class_name="MultiModalEncoder",
        parameters=sum(each.parameters for each in nodes),
        trainable=sum(each.trainable for each in nodes),
        calls=6,
        nodes=tuple(nodes),
        edges=tuple(edges),
        note=note,
    )


def edge(source: str, target: str, *, cut: str | None = None, share: float = 1.0) -> FlowEdge:
    """Return a value that flowed."""
    return FlowEdge(source=source, target=target, cut=cut, share=share)


ENCODER = flow(
    [
        step("input", "input", kind="input"),
        step("branches.audio.0", "Linear", parameters=272),
        step("branches.audio.1", "ReLU"),
        step("branches.text.0", "Linear", parameters=272, trainable=0),
        step("branches.text.1", "ReLU"),
        step("cat_1", "cat", kind="operation"),
        step("mix", "Identity"),
        step("ctx", "Linear", parameters=1056),
        step("add_1", "add", kind="operation"),
        step("post.0", "Linear", parameters=1056),
        step("output", "output", kind="output"),
    ],
    [
        edge("input", "branches.audio.0"),
        edge("input", "branches.text.0"),
        edge("branches.audio.0", "branches.audio.1"),
        edge("branches.text.0", "branches.text.1"),
        edge("branches.audio.1", "cat_1"),
        edge("branches.text.1", "cat_1"),
        edge("cat_1", "mix"),
        edge("mix", "ctx", cut="detach"),
        edge("mix", "post.0"),
        edge("ctx", "add_1", share=0.37),
        edge("post.0", "add_1"),
        edge("add_1", "output"),
    ],
)

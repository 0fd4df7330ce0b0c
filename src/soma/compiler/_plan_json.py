"""A plan as JSON text and back; what is read is checked field by field."""

import json

from soma.compiler._diagnostic_json import diagnostic_in, diagnostic_out
from soma.compiler._json_fields import fields, many, require, text, text_or_none, truth
from soma.compiler._mode import CompileMode
from soma.compiler._parts import (
    Composite,
    Empty,
    Execute,
    Parallel,
    Part,
    Remote,
    Sequence,
    executes,
)
from soma.core import Diagnostic, NodeId

_FORMAT = 1
_DEEPEST = 200  # a plan of the compiler stays far below
_HOLDERS: dict[str, type[Sequence] | type[Parallel] | type[Composite]] = {
    "sequence": Sequence,
    "parallel": Parallel,
    "composite": Composite,
}

Content = tuple[Part, CompileMode, tuple[Diagnostic, ...], tuple[NodeId, ...]]


def written(content: Content) -> str:
    """Return the JSON text of a plan."""
    root, mode, diagnostics, order = content
    return json.dumps(
        {
            "format": _FORMAT,
            "mode": mode.value,
            "order": order,
            "root": _part_out(root),
            "diagnostics": [diagnostic_out(one) for one in diagnostics],
        }
    )


def read(source: str) -> Content:
    """Return what `written` was given.

    Raises:
        ValueError: the text is no plan; the message names the first thing that is wrong.
    """
    try:
        data = json.loads(source)
    except (ValueError, TypeError, RecursionError) as problem:
        raise ValueError(f"this is no plan: JSON is wanted ({problem}).") from problem
    version = data.get("format") if isinstance(data, dict) else None
    require(type(version) is int and version == _FORMAT, "its format", version, f"{_FORMAT}")
    _, mode, order, root, diagnostics = fields(
        data, "the whole", "format", "mode", "order", "root", "diagnostics"
    )
    tree, names = _part_in(root, "root", 0), many(order, "order", text)
    _check_order(tree, names)
    return (
        tree,
        CompileMode(text(mode, "mode")),
        many(diagnostics, "diagnostics", diagnostic_in),
        names,
    )


def _part_out(part: Part) -> dict[str, object]:
    if isinstance(part, Execute):
        return {
            "kind": "execute",
            "node": part.node,
            "inputs": part.inputs,
            "differentiable": part.differentiable,
            "uncached": part.uncached,
        }
    if isinstance(part, Empty):
        return {"kind": "empty"}
    parts = [_part_out(one) for one in part.parts]
    if isinstance(part, Remote):
        return {"kind": "remote", "target": part.target, "parts": parts}
    return {"kind": type(part).__name__.lower(), "parts": parts}


def _part_in(value: object, where: str, depth: int) -> Part:
    require(depth <= _DEEPEST, "the depth of the tree", depth, f"at most {_DEEPEST}")
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "empty":
        fields(value, where, "kind")
        return Empty()
    if kind == "execute":
        _, node, inputs, differentiable, uncached = fields(
            value, where, "kind", "node", "inputs", "differentiable", "uncached"
        )
        return Execute(
            text(node, f"{where}.node"),
            many(inputs, f"{where}.inputs", text),
            truth(differentiable, f"{where}.differentiable"),
            text_or_none(uncached, f"{where}.uncached"),
        )

    def part_in(one: object, at: str) -> Part:
        return _part_in(one, at, depth + 1)

    if kind == "remote":
        _, target, parts = fields(value, where, "kind", "target", "parts")
        return Remote(text(target, f"{where}.target"), many(parts, f"{where}.parts", part_in))
    holder = _HOLDERS.get(kind) if isinstance(kind, str) else None
    if holder is None:
        wanted = f"one of {', '.join(['execute', 'empty', 'remote', *_HOLDERS])}"
        raise ValueError(f"this is no plan: {where}.kind is {kind!r:.80}; {wanted} is wanted.")
    _, parts = fields(value, where, "kind", "parts")
    return holder(many(parts, f"{where}.parts", part_in))


def _check_order(root: Part, order: tuple[NodeId, ...]) -> None:
    """Refuse a plan in which a node could run before what it reads."""
    steps = {step.node: step for step in executes(root)}
    nodes = [step.node for step in executes(root)]
    require(len(nodes) == len(steps), "the nodes", nodes, "each node once")
    complete = len(order) == len(steps) and steps.keys() == set(order)
    require(complete, "order", order, "each node of the tree once")
    seen: set[NodeId] = set()
    for node in order:
        _check_inputs(steps[node], seen)
        seen.add(node)
    _rehearse(root, set())


def _rehearse(part: Part, done: set[NodeId]) -> set[NodeId]:
    """Pretend to run a part after `done`, which grows; return the nodes of the part."""
    if isinstance(part, Empty):
        return set()
    if isinstance(part, Execute):
        _check_inputs(part, done)
        done.add(part.node)
        return {part.node}
    inside: set[NodeId] = set()
    for one in part.parts:
        new = _rehearse(one, done)
        inside |= new
        if isinstance(part, Parallel):
            done -= new  # a neighbour may not count on them
    done |= inside
    return inside


def _check_inputs(step: Execute, done: set[NodeId]) -> None:
    for one in step.inputs:
        require(one in done, f"an input of {step.node!r:.80}", one, "a node that ran before")

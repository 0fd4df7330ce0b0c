"""The turns of one node, laid over each other: what ran, and in which share of them."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace

from torch import nn
from torch.nn.parameter import is_lazy

from soma.audit._flow._record import Record, Step
from soma.audit._flow._turn import Turn
from soma.core import FlowEdge, FlowNode, ModuleFlow, NodeId
from soma.draw import shortened

_LONGEST_DETAIL = 160


class MergedFlow:
    """What has been seen of one node."""

    def __init__(self, node: NodeId, class_name: str) -> None:
        self._node = node
        self._class_name = class_name
        self._calls = 0
        self._size = (0, 0)
        self._known: dict[Hashable, FlowNode] = {}  # `flow` fills in the shares
        self._ids: set[str] = set()
        self._node_counts: Counter[Hashable] = Counter()
        self._edge_counts: Counter[tuple[Hashable, Hashable, str | None]] = Counter()
        self._notes: dict[str, None] = {}

    def take(self, turn: Turn | None, module: nn.Module, reason: str | None) -> None:
        """Lay one more turn over those before; or, where there is none, only its ends."""
        try:
            if turn is None:
                self._add_ends(module)
            elif turn.failure is None:
                self._add(turn.record)
        except Exception as error:  # the user's training goes on
            reason = f"tracing failed: {type(error).__name__}: {error}"
        for note in (reason, None if turn is None else turn.note()):
            if note is not None:
                self._notes[note] = None

    def flow(self) -> ModuleFlow:
        """Return what has been seen so far."""
        calls = max(self._calls, 1)
        ids = {key: known.id for key, known in self._known.items()}
        return ModuleFlow(
            node=self._node,
            class_name=self._class_name,
            parameters=self._size[0],
            trainable=self._size[1],
            calls=self._calls,
            nodes=tuple(
                replace(known, share=self._node_counts[key] / calls)
                for key, known in self._known.items()
            ),
            edges=tuple(
                FlowEdge(source=ids[source], target=ids[target], cut=cut, share=count / calls)
                for (source, target, cut), count in self._edge_counts.items()
            ),
            note="; ".join(self._notes) or None,
        )

    def _add(self, record: Record) -> None:
        self._calls += 1
        self._size = _size(record.module.parameters())
        # A module that is nobody's part goes by the name of its class.
        taken = {*record.paths.values(), type(record.module).__name__, *self._ids}
        for step in record.steps:
            if step.key not in self._known:
                known = _describe(step, taken)
                taken.add(known.id)
                self._ids.add(known.id)
                self._known[step.key] = known
        self._node_counts.update({step.key for step in record.steps})
        # Each once, in the order in which they came about.
        edges: dict[tuple[Hashable, Hashable, str | None], None] = {}
        for source, target, cut in record.edges:
            ends = source.shown().key, target.shown().key
            if ends[0] != ends[1] and self._known.keys() >= {*ends}:
                edges[*ends, cut] = None
        self._edge_counts.update(edges.keys())

    def _add_ends(self, module: nn.Module) -> None:
        """Put the module as one box where nobody may look into it."""
        record = Record(module)
        name = type(module).__name__
        steps = [
            Step("input", ("input", ""), "input", ""),
            Step("module", ("module", name), name, ""),
            Step("output", ("output", ""), "output", ""),
        ]
        steps[1].module = module
        record.steps = steps
        record.edges = [(steps[0], steps[1], None), (steps[1], steps[2], None)]
        self._add(record)


def _describe(step: Step, taken: set[str]) -> FlowNode:
    """Return what is kept of a step, which is not its module; its share is not known yet."""
    if step.module is not None:
        detail = _extra(step.module)
        weights: Iterable[nn.Parameter] = step.module.parameters()
    else:
        detail = f"uses {', '.join(step.weights)}" if step.weights else ""
        weights = step.weights.values()
    parameters, trainable = _size(weights)
    return FlowNode(
        id=_id(step, taken),
        kind=step.kind,
        label=step.label,
        path=step.path,
        parameters=parameters,
        trainable=trainable,
        shape=step.shape,
        detail=shortened(detail, _LONGEST_DETAIL),
        share=0.0,
    )


def _id(step: Step, taken: set[str]) -> str:
    if step.kind == "module":
        return str(step.key[1])  # type: ignore[index]
    name = step.label
    if step.kind != "operation":
        name = step.kind if step.label == step.kind else f"{step.kind}.{step.label}"
        if name not in taken:
            return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _extra(module: nn.Module) -> str:
    try:
        return str(module.extra_repr())
    except Exception:  # the user's own, which may need what is not there
        return ""


def _size(weights: Iterable[nn.Parameter]) -> tuple[int, int]:
    parameters = trainable = 0
    for one in weights:
        if not is_lazy(one):
            parameters += one.numel()
            trainable += one.numel() if one.requires_grad else 0
    return parameters, trainable

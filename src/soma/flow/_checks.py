"""What is wrong with a flow before it runs, and where the meaning of gradients ends."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from soma.compiler import CompileMode, Execute, ExecutionPlan, arranged, refusal, structural_errors
from soma.core import Diagnostic, Label, NodeId
from soma.errors import listing
from soma.flow._agent import Agent
from soma.flow._computation import Computation
from soma.flow._node import FlowNode, part_prefix

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow

_DEEPEST = 20  # flows in each other
_UNCACHED = "a flow keeps its effects in the journal of its run"


def compiled(flow: "DeclaredFlow", mode: str, *, needs_model: bool = True) -> ExecutionPlan:
    """Return the plan of a flow, with what is to say about it.

    Args:
        needs_model: refuse nodes that have no model and find none around them.

    Raises:
        CompileError: the flow cannot run; the message shows every reason.
    """
    asked = CompileMode(mode)
    errors = [*_errors(flow, "", has_model=not needs_model, around=())]
    if errors:
        raise refusal(errors, "flow")
    wiring = flow.topology.wiring()
    steps = [
        Execute(node, wiring.predecessors[node], differentiable=False, uncached=_UNCACHED)
        for node in wiring.order
    ]
    ends = _ends(flow) if asked is CompileMode.Differentiable else ()
    return ExecutionPlan(arranged(steps), asked, tuple(ends), wiring.order)


def _errors(
    flow: "DeclaredFlow", prefix: str, *, has_model: bool, around: tuple["DeclaredFlow", ...]
) -> Iterator[Diagnostic]:
    if flow in around:
        yield _error(prefix.rstrip("."), "recursion", f"The flow `{flow.name}` is inside of itself",
                     "Repeat a part of a flow with `Condition.loop`.")  # fmt: skip
        return
    if len(around) >= _DEEPEST:
        yield _error(prefix.rstrip("."), "depth", f"Flows are inside of {_DEEPEST} others here",
                     "Take some of them out, side by side.")  # fmt: skip
        return
    for found in structural_errors(flow.topology):
        yield _moved(found, prefix)
    has_model = has_model or flow.model is not None
    for node in flow.topology.nodes.values():
        id = f"{prefix}{node.id}"
        if not isinstance(node.filter, FlowNode):
            name = type(node.filter).__name__
            yield _error(id, "no-flow-node", f"`{id}` (`{name}`) computes, and a flow orchestrates",
                         "Put it into a graph, which is one node of a flow: "
                         f"`soma.Graph.somatize({name}(...))`.")  # fmt: skip
            continue
        if node.target is not None:
            yield _error(id, "placed", f"`{id}` is placed at `{node.target}`",
                         "Nodes of a flow run here; place those of a graph in it.")  # fmt: skip
        yield from _of_node(flow, node.filter, node.id, id, has_model=has_model)
        for name, part in node.filter.parts().items():
            yield from _errors(
                part, part_prefix(id, name), has_model=has_model, around=(*around, flow)
            )


def _of_node(
    flow: "DeclaredFlow", node: FlowNode, own: NodeId, id: NodeId, *, has_model: bool
) -> Iterator[Diagnostic]:
    if node.needs_model() and not has_model:
        yield _error(id, "no-model", f"`{id}` asks a model, and there is none",
                     "Give it one, or its flow: `soma.Flow.somatize(..., model=...)`.")  # fmt: skip
    if isinstance(node, Agent):
        names = [tool.name for tool in node.toolbox]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            yield _error(id, "equal-tools", f"`{id}` has several tools named {listing(twice)}",
                         'Name them apart: `Tool(function, name="...")`.')  # fmt: skip
    given = _given(flow, own)
    missing = [] if given is None else node.missing(given)
    if missing:
        told = f"gets {listing(sorted(given))}" if given else "gets a text"
        yield _error(id, "unknown-field", f"`{id}` puts in {listing(missing)}, and {told}",
                     "Fields are `{input}` for the whole value, and the ids of the nodes before "
                     "where these are several.")  # fmt: skip


def _given(flow: "DeclaredFlow", own: NodeId) -> frozenset[str] | None:
    """Return the names in what a node gets, as far as that is known."""
    sources = flow.topology.wiring().predecessors.get(own, ())
    if len(sources) > 1:
        return frozenset(sources)
    if not sources:
        return None
    before = flow.topology.nodes[sources[0]].filter
    return before.gives() if isinstance(before, FlowNode) else None


def _moved(found: Diagnostic, prefix: str) -> Diagnostic:
    """Return a finding about a part in words of the whole flow."""
    help = found.help
    if found.code == "cycle":
        help = "Take out one of these links. `Condition.loop` repeats a part of a flow."
    return replace(
        found,
        node=None if found.node is None else f"{prefix}{found.node}",
        labels=tuple(replace(one, node=f"{prefix}{one.node}") for one in found.labels),
        help=help,
    )


def _error(id: NodeId, code: str, message: str, help: str) -> Diagnostic:
    return Diagnostic(
        level="error",
        code=code,
        node=id,
        message=message,
        labels=(Label(node=id, role="fault"),),
        help=help,
    )


def _ends(flow: "DeclaredFlow", prefix: str = "") -> Iterator[Diagnostic]:
    """Yield a warning for each link between a graph and what is none."""
    wiring = flow.topology.wiring()
    nodes = {id: node.filter for id, node in flow.topology.nodes.items()}
    for position, source in enumerate(wiring.order, start=1):
        for target in wiring.successors[source]:
            ends = nodes[source], nodes[target]
            graphs = [one for one in ends if isinstance(one, Computation)]
            if graphs:
                yield _end(prefix, source, target, ends, position)
        node = nodes[source]
        if isinstance(node, FlowNode):
            for name, part in node.parts().items():
                yield from _ends(part, part_prefix(f"{prefix}{source}", name))


def _end(
    prefix: str, source: NodeId, target: NodeId, ends: tuple[object, object], position: int
) -> Diagnostic:
    names = [f"{prefix}{source}", f"{prefix}{target}"]
    kinds = ["a graph" if isinstance(one, Computation) else type(one).__name__ for one in ends]
    both = kinds == ["a graph", "a graph"]
    remark = (
        "A flow hands values on, without the history that gradients go back by."
        if both
        else "Models, tools and people answer in texts and data, which have no gradient."
    )
    return Diagnostic(
        level="warning",
        code="gradients-end",
        node=names[0],
        message=f"Gradients have no meaning between `{names[0]}` ({kinds[0]}) and `{names[1]}` "
        f"({kinds[1]})",
        position=position,
        drawn=(names[0], names[1]),
        marked=(0, 2),
        remarks=(remark,),
        labels=tuple(Label(node=name, role="cut") for name in names),
        help=(
            "Make one graph of both, and gradients go through. "
            if both
            else "Gradients work within each graph. "
        )
        + 'What stops them there, `graph.compile("differentiable")` says.',
    )

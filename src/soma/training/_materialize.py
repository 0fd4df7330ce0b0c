"""Builds every module of a graph from one sample.

The sample walks through the graph. Each module is built for the shape that reaches it and
then run once on the sample, in eval, so that what shapes cannot tell is found out and a
wrong shape is told here rather than in the first step.
"""

from torch import nn
from torch.nn.parameter import is_lazy

from soma.core import Node, NodeId, per_root
from soma.engine import Call, NoKey, Runner, describe, lower
from soma.errors import NotMaterialized, SomaError, listing
from soma.training._calls import overrides_forward, seen_by_others
from soma.training._convert import Kind, kind_of, mirrored
from soma.training._elsewhere import Placement
from soma.training._filter import DifferentiableFilter
from soma.training._prefix import Prefix, frontier, prefix_nodes
from soma.training._shape import Shapes, shape_of
from soma.training._trial import trial_run
from soma.training._weights import load_weights


def materialize(
    runner: Runner,
    sample: object,
    placement: Placement | None = None,
    prefix: Prefix | None = None,
) -> None:
    """Build what is not built yet, and run every node once on `sample`.

    Args:
        runner: of the graph.
        sample: what the roots read.
        placement: where modules are built that do not live here.
        prefix: what the nodes before the first module gave for it; without it they run too.

    Raises:
        NotFitted: a plain filter upstream has to be fitted first.
        NotMaterialized: a filter whose module does not get built.
    """
    plan = runner.plan("differentiable")
    plain = [node for node in runner.topology if not isinstance(node.filter, DifferentiableFilter)]
    runner.check_fitted(plain)
    kind = kind_of(sample)
    done = set() if prefix is None else prefix_nodes(runner.topology)
    calls = {
        node.id: building_call(runner, kind, node, placement) or runner.plain_call(node)
        for node in runner.topology
        if node.id not in done
    }
    steps = [step for step in plan.steps() if step.node not in done]
    guarded, leaves = runner.guarded(calls, runner.seed), runner.topology.wiring().leaves
    program = lower(steps, guarded, leaves, frontier(runner.topology, done))
    inputs = per_root(sample, program.roots) if prefix is None else prefix.values
    runner.execute(program, inputs, {}, "build")
    runner.changed()


def building_call(
    runner: Runner, kind: Kind, node: Node, placement: Placement | None = None
) -> Call | None:
    """Return a call that builds a module node when its input arrives; None for plain nodes."""
    if not isinstance(node.filter, DifferentiableFilter):
        return None
    away = None if node.target is None else placement
    return Call(Building(node, runner, kind, away), key=NoKey("it is being built"))


def build(runner: Runner, node: Node, x: object) -> object:
    """Build one node's module for `x`, and return its answer as tensors, in eval."""
    return Building(node, runner, "tensor", None)(x)


class Building:
    """Builds one node's module for the input that reaches it, and answers with a trial run."""

    __slots__ = ("is_shown", "kind", "node", "placement", "runner")

    def __init__(self, node: Node, runner: Runner, kind: Kind, placement: Placement | None) -> None:
        self.node = node
        self.runner = runner
        self.kind = kind  # what plain filters get to see, as in inference
        self.placement = placement  # None: the module is built here
        self.is_shown = seen_by_others(runner.topology, node.id)

    def __call__(self, x: object) -> object:
        filter = self.node.filter
        assert isinstance(filter, DifferentiableFilter)
        if self.placement is not None:
            return self._shown(self.placement.build(self.node, x))
        shape = shape_of(x)
        new = filter._live is None
        # A filter that reads its shapes in its own `forward` builds itself there.
        if new and (shape is not None or not overrides_forward(filter)):
            try:
                filter.materialize(shape)
            except SomaError:
                raise
            except Exception as error:
                error.add_note(_about(shape, x))
                raise
        output = self._tried(filter, x)
        if filter._live is None:
            raise NotMaterialized(
                f"`{self.node.id}` has no module after a run: its `forward` does not call "
                f"`self.materialize(input_shape)`, and the input has no shape ({shape!r})."
            )
        if new:
            try:
                _refuse_stray_parameters(self.node.id, filter)
                state = self.runner.states.get(self.node.id)
                if state is not None:
                    load_weights(filter._live, state["weights_b64"])  # type: ignore[index]
            except Exception:
                filter._module = None  # refused again the next time, not left with other weights
                raise
        return self._shown(output)

    def _shown(self, output: object) -> object:
        return mirrored(output, self.kind) if self.is_shown else output

    def _tried(self, filter: DifferentiableFilter, x: object) -> object:
        """Return what a trial run gives, building what has no shape to be built for."""
        try:
            return trial_run(filter, x)
        except Exception:
            if filter._live is not None:
                raise
            filter.materialize(None)
            return trial_run(filter, x)


def _about(shape: Shapes, x: object) -> str:
    told = f"while building the module for samples of shape {shape}"
    if isinstance(shape, dict):
        return (
            f"{told}: this node is a fan-in, so shapes come by predecessor. Use them all in "
            "`build_module`, and join the values in a `forward(x, state=None)` of its own"
        )
    if shape is None:
        return (
            f"{told}: {describe(x)} has none. A module wants a tensor, an array or a list of "
            "numbers in rows of one length; make one in a filter before it"
        )
    if shape == ():
        return f"{told}: a sample is a single number here; `x[:, None]` makes it a row of one"
    return told


def _refuse_stray_parameters(node: NodeId, filter: DifferentiableFilter) -> None:
    """Refuse weights that hang on the filter itself, where no optimizer would find them."""
    assert filter._live is not None
    known = {id(parameter) for parameter in filter._live.parameters()}
    stray = []
    for name, value in vars(filter).items():
        if isinstance(value, nn.Parameter):
            held = [value]
        elif isinstance(value, nn.Module):
            held = list(value.parameters())
        else:
            continue
        if any(one.requires_grad and id(one) not in known for one in held):
            stray.append(name)
    if stray:
        raise NotMaterialized(
            f"`{node}` holds trainable weights in {listing(stray)} outside its module, where no "
            "optimizer finds them. Make them part of what `build_module` returns, or call "
            "`requires_grad_(False)` on them."
        )


def unbuilt(filters: "list[tuple[NodeId, DifferentiableFilter]]") -> None:
    """Raise one error that names every filter without a finished module."""
    missing = [
        node
        for node, filter in filters
        if filter._live is None or any(is_lazy(one) for one in filter._live.parameters())
    ]
    if missing:
        raise NotMaterialized(
            f"{listing(missing)} {'has' if len(missing) == 1 else 'have'} no module yet, so there "
            "are no weights to use. Call `g.materialize(sample)` first."
        )

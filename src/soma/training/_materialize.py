"""Builds every module of a graph from one sample.

The sample walks through the graph. Each module is built for the shape that reaches it and
then run once on the sample, in eval, so that what shapes cannot tell is found out and a
wrong shape is told here rather than in the first step.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from soma.core import Node, NodeId, per_root
from soma.engine import Call, Runner, generators_kept, lower
from soma.errors import NotMaterialized, SomaError, listing
from soma.training._calls import checked_pair, overrides_forward, wanted_of
from soma.training._convert import to_tensors, wanted_by
from soma.training._filter import DifferentiableFilter
from soma.training._shape import Shapes, shape_of
from soma.training._weights import load_weights


def materialize(runner: Runner, sample: object) -> None:
    """Build what is not built yet, and run every node once on `sample`.

    Raises:
        NotFitted: a plain filter upstream has to be fitted first.
        NotMaterialized: a filter whose module does not get built.
    """
    plan = runner.plan("differentiable")
    plain = [node for node in runner.topology if not isinstance(node.filter, DifferentiableFilter)]
    runner.check_fitted(plain)
    calls = {
        node.id: building_call(runner, node) or runner.plain_call(node) for node in runner.topology
    }
    program = lower(plan.steps(), calls, runner.topology.wiring().leaves)
    runner.execute(program, per_root(sample, program.roots), {}, "build")
    runner.changed()


def building_call(runner: Runner, node: Node) -> Call | None:
    """Return a call that builds a module node when its input arrives; None for plain nodes."""
    if not isinstance(node.filter, DifferentiableFilter):
        return None
    return Call(Building(node, runner))


class Building:
    """Builds one node's module for the input that reaches it, and answers with a trial run."""

    __slots__ = ("node", "runner")

    def __init__(self, node: Node, runner: Runner) -> None:
        self.node = node
        self.runner = runner

    def __call__(self, x: object) -> object:
        filter = self.node.filter
        assert isinstance(filter, DifferentiableFilter)
        shape = shape_of(x)
        new = filter._live is None
        # A filter that reads its shapes in its own `forward` builds itself there.
        if new and (shape is not None or not overrides_forward(filter)):
            try:
                filter.materialize(shape)
            except SomaError:
                raise
            except Exception as error:
                error.add_note(_about(shape))
                raise
        output = trial_run(filter, x)
        if filter._live is None:
            raise NotMaterialized(
                f"`{self.node.id}` has no module after a run: its `forward` does not call "
                f"`self.materialize(input_shape)`, and the input has no shape ({shape!r})."
            )
        if new:
            _refuse_stray_parameters(self.node.id, filter)
            state = self.runner.states.get(self.node.id)
            if state is not None:
                load_weights(filter._live, state["weights_b64"])  # type: ignore[index]
        return output


def _about(shape: Shapes) -> str:
    told = f"while building the module for samples of shape {shape}"
    if isinstance(shape, dict):
        return f"{told}: this node is a fan-in, so shapes come by predecessor"
    if shape == ():
        return f"{told}: a sample is a single number here; `x[:, None]` makes it a row of one"
    return told


def trial_run(filter: DifferentiableFilter, x: object) -> object:
    """Return the live module's output for `x` in eval, leaving no trace of the run."""
    module = filter._live
    # Lazy layers draw their weights in this run, so there the generators have to move on.
    lazy = module is None or any(is_lazy(one) for one in [*module.parameters(), *module.buffers()])
    with nullcontext() if lazy else generators_kept(), torch.no_grad(), _kept(module):
        if module is not None:
            module.eval()
        if not overrides_forward(filter):
            assert module is not None
            return module(to_tensors(x, wanted_by(module)))
        was_training = filter.training
        filter.training = True  # so that it answers with tensors, whatever they are held in
        try:
            given = to_tensors(x, wanted_of(filter))
            return checked_pair(filter, filter.forward(given, None))[0]
        finally:
            filter.training = was_training
            if filter._live is not None:
                filter._live.train(was_training)


@contextmanager
def _kept(module: nn.Module | None) -> Iterator[None]:
    """Put the modes and buffers of `module` back afterwards."""
    if module is None:
        yield
        return
    modes = [(part, part.training) for part in module.modules()]
    buffers: list[tuple[Tensor, Tensor]] = [
        (one, one.clone()) for one in module.buffers() if not is_lazy(one)
    ]
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
        with torch.no_grad():
            for buffer, before in buffers:
                if buffer._version and not torch.equal(buffer, before):
                    buffer.copy_(before)


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

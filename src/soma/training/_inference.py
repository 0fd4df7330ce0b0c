"""One forward in eval: no autograd, and outputs of the kind that the graph was given.

One exception: an input that asks for a gradient gets one, and the weights still do not.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from warnings import warn

import torch

from soma.core import Node, NodeId, has_module, per_root
from soma.engine import Call, Program, Runner, lower, run_observed
from soma.errors import GradientWarning, listing
from soma.training._calls import (
    Evaluating,
    Mirrored,
    built_module,
    module_call,
    only_bare_modules,
    overrides_forward,
)
from soma.training._convert import KINDS, Kind, kind_of, wants_gradient
from soma.training._filter import DifferentiableFilter
from soma.training._training_run import TrainingRun


class Inference:
    """Runs a graph with modules in eval."""

    def __init__(self, runner: Runner, training: TrainingRun) -> None:
        self.runner = runner
        self.training = training
        self._binds = {kind: partial(self.call, kind=kind) for kind in KINDS}

    def forward(self, x: object, seed: int | None) -> object:
        """Return the output of the one leaf, or a dict of all of them."""
        if wants_gradient(x) and torch.is_grad_enabled():
            return self._with_gradient(x)
        kind = kind_of(x)
        return self.runner.forward(x, seed=seed, bind=self._binds[kind], key=kind)

    def call(self, node: Node, *, kind: Kind) -> Call | None:
        """Return what a module node does in eval; None for a plain one."""
        filter = node.filter
        if not isinstance(filter, DifferentiableFilter):
            return None
        if overrides_forward(filter):
            own = Evaluating(filter, self.runner.states.get(node.id))
            # A `forward` of its own may give a list or an array whatever it was given.
            return Call(Mirrored(own, kind) if self._shown(node.id) else own)
        topology = self.runner.topology
        sources = topology.wiring().predecessors[node.id]
        mirrors = kind != "tensor"
        takes_tensors = only_bare_modules(topology, sources) and not (
            mirrors and any(self._shown(one) for one in sources)
        )
        call = module_call(built_module(node), takes_tensors=takes_tensors)
        if mirrors and self._shown(node.id):
            return Call(Mirrored(call.function, kind))
        return call

    def _shown(self, node: NodeId) -> bool:
        """Whether anybody but modules sees what a node gives."""
        topology = self.runner.topology
        successors = topology.wiring().successors[node]
        return not successors or not all(
            has_module(topology.nodes[one].filter) for one in successors
        )

    def _with_gradient(self, x: object) -> object:
        runner = self.runner
        program = runner.program("eval with gradient", self._lower_with_gradient)
        inputs = per_root(x, program.roots)
        alive: dict[NodeId, bool] = {}

        def watch(node: NodeId, value: object) -> None:
            alive[node] = wants_gradient(value)

        with _weights_at_rest(runner), runner.listeners.listening(tap=watch):
            output = run_observed(program, inputs, {}, "forward", runner.name, runner.listeners)
        if not wants_gradient(output):
            wiring = runner.topology.wiring()
            cut = [
                node
                for node in wiring.order
                if not alive[node]
                and (
                    any(alive[one] for one in wiring.predecessors[node])
                    or (node in inputs and wants_gradient(inputs[node]))
                )
            ]
            warn(
                f"cut: the input asks for a gradient, and it is lost at {listing(cut)}: what comes "
                "out there is detached. A filter that gradients may pass says so with "
                "`_differentiable = True` and returns tensors.",
                GradientWarning,
                stacklevel=5,
            )
        return output

    def _lower_with_gradient(self) -> Program:
        runner = self.runner
        runner.check_fitted(list(runner.topology))
        calls = {
            node.id: self.call(node, kind="tensor") or self.training.call(node)
            for node in runner.topology
        }
        steps = runner.plan("differentiable").steps()
        return lower(steps, calls, runner.topology.wiring().leaves)


@contextmanager
def _weights_at_rest(runner: Runner) -> Iterator[None]:
    """Let no weight ask for a gradient inside."""
    asking = {
        id(parameter): parameter
        for node in runner.topology
        if isinstance(node.filter, DifferentiableFilter) and node.filter._module is not None
        for parameter in node.filter._module.parameters()
        if parameter.requires_grad
    }
    for parameter in asking.values():
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in asking.values():
            parameter.requires_grad_(True)

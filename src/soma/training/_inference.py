"""One forward in eval: no autograd, and outputs of the kind that the graph was given.

One exception: an input that asks for a gradient gets one, and the weights still do not.
"""

from collections.abc import Callable, Mapping
from functools import partial
from warnings import warn

import torch
from torch import Tensor

from soma.core import Node, NodeId, has_module, per_root
from soma.engine import Bind, Call, Program, Runner, lower, run_observed
from soma.errors import GradientWarning, ModeError, listing
from soma.training._calls import (
    AtRest,
    Copying,
    Evaluating,
    Mirrored,
    ModuleKey,
    built_module,
    module_call,
    only_bare_modules,
    overrides_forward,
    seen_by_others,
)
from soma.training._convert import KINDS, Kind, kind_of, wants_gradient
from soma.training._elsewhere import Away, StandIn
from soma.training._filter import DifferentiableFilter
from soma.training._reach import reaches
from soma.training._training_run import TrainingRun


class Inference:
    """Runs a graph with modules in eval."""

    def __init__(self, runner: Runner, training: TrainingRun) -> None:
        self.runner = runner
        self.training = training
        self._binds: dict[Kind, Bind] = {kind: partial(self.call, kind=kind) for kind in KINDS}

    def forward(self, x: object, seed: int | None) -> object:
        """Return the output of the one leaf, or a dict of all of them."""
        if type(x) is Tensor and not x.requires_grad:
            kind: Kind = "tensor"  # without a look for more, as for most inputs
        elif wants_gradient(x) and torch.is_grad_enabled():
            return self._with_gradient(x, seed)
        else:
            kind = kind_of(x)
        return self.runner.forward(x, seed=seed, bind=self._binds[kind], key=kind)

    def bind_for(self, x: object) -> Bind:
        """Return how nodes answer for data of the kind of `x`, without gradients."""
        return self._binds[kind_of(x)]

    def call(self, node: Node, *, kind: Kind) -> Call | None:
        """Return what a module node does in eval; None for a plain one."""
        filter = node.filter
        if not isinstance(filter, DifferentiableFilter):
            return None
        topology = self.runner.topology
        seen, sources = seen_by_others(topology, node.id), topology.wiring().predecessors[node.id]
        function: Callable[[object], object]
        if isinstance(filter._module, StandIn):
            function = _output_of(Away(filter._module, graph_trains=False))
        elif overrides_forward(filter):
            function = Evaluating(filter)
        else:
            takes_tensors = only_bare_modules(topology, sources) and not (
                kind != "tensor" and any(seen_by_others(topology, one) for one in sources)
            )
            function = module_call(built_module(node), takes_tensors=takes_tensors).function
        if filter._writes_input:
            function = Copying(function)
        # A `forward` of its own may give a list or an array whatever it was given.
        if seen and (kind != "tensor" or overrides_forward(filter)):
            function = Mirrored(function, kind)
        return Call(function, key=ModuleKey(filter, kind))

    def _with_gradient(self, x: object, seed: int | None) -> object:
        runner = self.runner
        seed = runner.seed if seed is None else seed
        program = runner.program(
            ("eval with gradient", seed), lambda: self._lower_with_gradient(seed)
        )
        inputs = per_root(x, program.roots)
        alive: dict[NodeId, bool] = {}

        def watch(node: NodeId, value: object) -> None:
            alive[node] = wants_gradient(value)

        with runner.listeners.listening(tap=watch):
            output = run_observed(program, inputs, {}, "forward", runner.name, runner.listeners)
        lost = [root for root in program.roots if not reaches(output, inputs[root])]
        if lost:
            self._warn(lost, alive)
        return output

    def _warn(self, lost: list[NodeId], alive: Mapping[NodeId, bool]) -> None:
        wiring = self.runner.topology.wiring()
        behind: dict[NodeId, None] = dict.fromkeys(lost)
        for node in wiring.order:
            if any(one in behind for one in wiring.predecessors[node]):
                behind[node] = None
        cut = [
            node
            for node in behind
            if not alive[node]
            and (node in lost or any(alive[one] for one in wiring.predecessors[node]))
        ]
        warn(
            f"cut: the input asks for a gradient, and it is lost at {listing(cut or lost)}: what "
            "comes out there is detached. A filter that gradients may pass says so with "
            "`_differentiable = True` and returns tensors.",
            GradientWarning,
            stacklevel=6,
        )

    def _lower_with_gradient(self, seed: int | None) -> Program:
        runner = self.runner
        runner.check_fitted(list(runner.topology))
        away = [
            id
            for id, node in runner.topology.nodes.items()
            if isinstance(getattr(node.filter, "_module", None), StandIn)
        ]
        if away:
            raise ModeError(
                f"the input asks for a gradient, and {listing(away)} of this graph in eval is in "
                "another process, from which gradients come back in a training step only. Call "
                "`g.freeze()` first: frozen copies are here."
            )
        calls = {
            node.id: Call(AtRest(node)) if has_module(node.filter) else self.training.call(node)
            for node in runner.topology
        }
        steps = runner.plan("differentiable").steps()
        return lower(steps, runner.guarded(calls, seed), runner.topology.wiring().leaves)


def _output_of(call: Away) -> Callable[[object], object]:
    return lambda x: call(x)[0]

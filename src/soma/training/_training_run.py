"""One forward in training: autograd live from the first module to every leaf."""

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from soma.core import Node, NodeId, per_root
from soma.engine import Call, Extras, Program, Runner, lower, run, run_observed, run_slots, watched
from soma.errors import InvalidInput
from soma.training._calls import (
    Judging,
    Live,
    Opaque,
    Training,
    built_module,
    module_call,
    only_bare_modules,
    overrides_forward,
)
from soma.training._elsewhere import Away, StandIn
from soma.training._filter import DifferentiableFilter
from soma.training._prefix import Prefix, frontier, prefix_nodes, stamp

# One training forward in this many tells what its nodes took: the first that a listener hears,
# the 65th and so on.
SAMPLED_EVERY = 64


class TrainingRun:
    """Runs a graph in training, from its roots or from where a prefix ends."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._listeners = runner.listeners
        self._forwards = 0  # since the last listener came
        self._joined = 0

    def forward(self, x: object) -> tuple[object, Extras]:
        """Return `(output, aux_by_node)`."""
        runner = self.runner
        aux: Extras = {}
        # A bare tensor, as in most loops, has a program that looks at nothing on its way.
        program = runner.known("train on a tensor") if type(x) is Tensor else None
        listeners = self._listeners
        if program is not None and not (listeners.events or listeners.taps or listeners.watchers):
            slots = [x] * program.size
            return run_slots(program, slots, aux, "train", runner.name), aux
        program, inputs = self._program(x, judging=False)
        if listeners.watchers:
            program = watched(program, listeners)
        if listeners.events or listeners.taps:
            if listeners.joined != self._joined:
                self._forwards, self._joined = 0, listeners.joined
            self._forwards += 1
            if listeners.taps or self._forwards % SAMPLED_EVERY == 1:
                output = run_observed(program, inputs, aux, "train", runner.name, listeners)
                return output, aux
        return run(program, inputs, aux, "train", runner.name), aux

    def judged(self, x: object) -> tuple[object, Extras]:
        """Return the same of filters that know they are in eval; nobody is told of the run."""
        program, inputs = self._program(x, judging=True)
        aux: Extras = {}
        return run(program, inputs, aux, "forward", self.runner.name), aux

    def _program(self, x: object, *, judging: bool) -> tuple[Program, Mapping[NodeId, object]]:
        runner, topology = self.runner, self.runner.topology
        what = "judge" if judging else "train"
        if isinstance(x, Prefix):
            if x.made_for != stamp(runner):
                raise InvalidInput(
                    "this prefix is of another graph, or was made before this one was fitted or "
                    "changed. Call `g.prefix(x)` again."
                )
            inside = prefix_nodes(topology)
            lowered = partial(self._lower, inside, judging=judging)
            return runner.program(f"{what} after a prefix", lowered), x.values
        on_tensor = type(x) is Tensor
        lowered = partial(self._lower, set(), judging=judging, on_tensor=on_tensor)
        program = runner.program(f"{what} on a tensor" if on_tensor else what, lowered)
        return program, per_root(x, program.roots)

    def _lower(self, prefix: set[NodeId], *, judging: bool, on_tensor: bool = False) -> Program:
        runner, topology = self.runner, self.runner.topology
        nodes = [node for node in topology if node.id not in prefix]
        runner.check_fitted(nodes)
        calls = {node.id: self.call(node, judging=judging, on_tensor=on_tensor) for node in nodes}
        steps = [step for step in runner.plan("differentiable").steps() if step.node in calls]
        return lower(steps, calls, topology.wiring().leaves, frontier(topology, prefix))

    def call(self, node: Node, *, judging: bool = False, on_tensor: bool = False) -> Call:
        """Return what a node does in training, or where training is judged."""
        filter = node.filter
        if not isinstance(filter, DifferentiableFilter):
            state = self.runner.states.get(node.id)
            live = filter.meta().differentiable
            present = self.runner.filter_of(node)
            return Call(Live(present, state) if live else Opaque(present, state))
        if isinstance(filter._module, StandIn):
            return Call(Away(filter._module, graph_trains=not judging), has_extra=True)
        if overrides_forward(filter):
            own = Judging(filter) if judging else Training(filter)
            return Call(own, has_extra=True)
        topology = self.runner.topology
        sources = topology.wiring().predecessors[node.id]
        takes = only_bare_modules(topology, sources) or (on_tensor and not sources)
        return module_call(built_module(node), takes_tensors=takes)

"""One forward in training: autograd live from the first module to every leaf."""

from collections.abc import Mapping

from soma.core import Node, NodeId, per_root
from soma.engine import Call, Extras, Program, Runner, lower, run, run_observed
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
from soma.training._filter import DifferentiableFilter
from soma.training._prefix import Prefix, frontier, prefix_nodes, stamp

# With listeners on, one training forward in this many tells what its nodes took.
SAMPLED_EVERY = 64


class TrainingRun:
    """Runs a graph in training, from its roots or from where a prefix ends."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._forwards = 0

    def forward(self, x: object) -> tuple[object, Extras]:
        """Return `(output, aux_by_node)`."""
        program, inputs = self._program(x, judging=False)
        aux: Extras = {}
        runner = self.runner
        listeners = runner.listeners
        if listeners.taps or (listeners.events and self._forwards % SAMPLED_EVERY == 0):
            output = run_observed(program, inputs, aux, "train", runner.name, listeners)
        else:
            output = run(program, inputs, aux, "train", runner.name)
        self._forwards += 1
        return output, aux

    def judged(self, x: object) -> tuple[object, Extras]:
        """Return the same of filters that know they are in eval; nobody is told of the run."""
        program, inputs = self._program(x, judging=True)
        aux: Extras = {}
        return run(program, inputs, aux, "forward", self.runner.name), aux

    def _program(self, x: object, *, judging: bool) -> tuple[Program, Mapping[NodeId, object]]:
        runner = self.runner
        if not isinstance(x, Prefix):
            key = "judge" if judging else "train"
            program = runner.program(key, lambda: self._lower(set(), judging=judging))
            return program, per_root(x, program.roots)
        topology = runner.topology
        if x.made_for != stamp(runner):
            raise InvalidInput(
                "this prefix is of another graph, or was made before this one was fitted or "
                "changed. Call `g.prefix(x)` again."
            )
        key = "judge after prefix" if judging else "train after prefix"
        program = runner.program(key, lambda: self._lower(prefix_nodes(topology), judging=judging))
        return program, x.values

    def _lower(self, prefix: set[NodeId], *, judging: bool) -> Program:
        runner, topology = self.runner, self.runner.topology
        nodes = [node for node in topology if node.id not in prefix]
        runner.check_fitted(nodes)
        calls = {node.id: self.call(node, judging=judging) for node in nodes}
        steps = [step for step in runner.plan("differentiable").steps() if step.node in calls]
        return lower(steps, calls, topology.wiring().leaves, frontier(topology, prefix))

    def call(self, node: Node, *, judging: bool = False) -> Call:
        """Return what a node does in training, or where training is judged."""
        filter = node.filter
        if not isinstance(filter, DifferentiableFilter):
            state = self.runner.states.get(node.id)
            live = filter.meta().differentiable
            return Call(Live(filter, state) if live else Opaque(filter, state))
        if overrides_forward(filter):
            own = Judging(filter) if judging else Training(filter)
            return Call(own, has_extra=True)
        topology = self.runner.topology
        sources = topology.wiring().predecessors[node.id]
        return module_call(built_module(node), takes_tensors=only_bare_modules(topology, sources))

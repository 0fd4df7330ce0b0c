"""`Runner`: fits and runs the filters of one graph, and remembers what they learned.

It knows nothing of torch. A room above may hand it a `bind` that says how some nodes
answer; all the others are plain filters and answer by `forward(x, state)`.
"""

from collections.abc import Callable, Mapping, Set
from concurrent.futures import Executor
from copy import deepcopy
from operator import index
from typing import cast

from soma.cache import Cache
from soma.compiler import CompileMode, Compiler, ExecutionPlan
from soma.core import (
    Filter,
    Inputs,
    Listeners,
    Node,
    NodeId,
    Phase,
    Topology,
    has_module,
    is_read_once,
    needs_fit,
    per_root,
)
from soma.engine._executors import Executors
from soma.engine._held import values_of
from soma.engine._memory import Memory
from soma.engine._parallel import Layout, run_parallel
from soma.engine._plain import FitCall, PlainCall, guarded
from soma.engine._program import Call, Program, lower
from soma.engine._rows import check_rows
from soma.engine._run import Extras, run, run_observed, run_slots
from soma.engine._seeding import drawing, drawing_numbers
from soma.engine._values import without_gradients
from soma.errors import NotFitted, listing

Bind = Callable[[Node], Call | None]

_MOST_PROGRAMS = 64  # each seed has a program of its own, and a loop may go through many seeds


class Runner:
    """What one graph needs to run: its topology, learned states, settings and listeners."""

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int | None,
        executor: Executor | str | None,
        cache: Cache | None = None,
    ) -> None:
        self.topology = topology
        self.memory = None if cache is None else Memory(cache, topology)
        self.seed = seed
        self.executors = Executors(executor)
        # Gives what stands here for a filter that runs on a worker.
        self.elsewhere: Callable[[Runner, Node], Filter] | None = None
        self.states: dict[NodeId, object] = {}
        self.fitted = object()  # replaced whenever the states of plain filters change
        self.listeners = Listeners()
        self._programs: dict[object, Program] = {}
        self._lowered_version = topology.version
        self._plans: dict[CompileMode, tuple[int, ExecutionPlan]] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_programs": {}, "_plans": {}}

    def changed(self) -> None:
        """Lower again at the next run, since a state or how a node answers has changed."""
        self._programs.clear()

    def state(self, node: NodeId) -> object:
        """Return a copy of what a node has learned; None before."""
        self.topology.node(node)
        return _copied(self.states.get(node))

    def set_state(self, node: NodeId, state: object) -> None:
        """Give a node what its `fit` would have learned."""
        self.topology.node(node)
        self.states[node] = _copied(state)
        if self.memory is not None:
            self.memory.state_changed(node, None)
        self.fitted = object()
        self.changed()

    def plan(self, mode: str) -> ExecutionPlan:
        """Compile the topology as it stands; the answer is kept until it changes."""
        mode = CompileMode(mode)
        kept = self._plans.get(mode)
        if kept is None or kept[0] != self.topology.version:
            plan = Compiler().compile(self.topology, self.memory, mode, seed=self.seed)
            self._plans[mode] = kept = (self.topology.version, plan)
        return kept[1]

    def known(self, key: object) -> Program | None:
        """Return the program kept under `key`, unless something has changed since."""
        if self._lowered_version != self.topology.version:
            self._lowered_version = self.topology.version
            self._programs.clear()
        return self._programs.get(key)

    def program(self, key: object, make: Callable[[], Program]) -> Program:
        """Return the program kept under `key`, made again after every change."""
        program = self.known(key)
        if program is None:
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            program = self._programs[key] = make()
        return program

    def forward(
        self,
        x: object,
        *,
        seed: int | None = None,
        bind: Bind | None = None,
        key: object = None,
    ) -> object:
        """Run the whole graph in inference.

        Args:
            x: the input of every root, or an `Inputs`.
            seed: for nodes that draw; the graph's own seed by default.
            bind: says how nodes answer that are not plain filters.
            key: tells programs of different binds apart.

        Raises:
            NotFitted: a node has to be fitted first.
        """
        seed = self.seed if seed is None else seed
        kept = ("forward", key, seed)
        program = self.known(kept)
        if program is None:
            program = self.program(kept, lambda: self._lower_forward(bind or _plain, seed))
        bare = self.memory is None and not self.executors.by_thread and not self.listeners
        if bare and type(x) is not Inputs and not is_read_once(x):
            with without_gradients():
                return run_slots(program, [x] * program.size, {}, "forward", self.name)
        return self.execute(program, per_root(x, program.roots), {}, "forward", seed)

    def fit(
        self, x: object, y: object = None, *, seed: int | None, executor: Executor | str | None
    ) -> None:
        """Fit every filter that learns on what its predecessors give; run each node once."""
        check_rows(x, y)
        plan = self.plan(CompileMode.Inference)
        calls = self.fit_calls(y, self.seed if seed is None else seed)
        program = lower(plan.steps(), calls, self.topology.wiring().leaves)
        learned: Extras = {}
        with self.executors.using(executor):
            self.execute(program, per_root(x, program.roots), learned, "fit", seed)
        self.learned(learned)

    def fit_calls(
        self, y: object, seed: int | None, bind: Bind | None = None
    ) -> dict[NodeId, Call]:
        """Return what each node does in a fit: learn if it can, then answer."""
        calls = {}
        for node in self.topology:
            call = (bind or _plain)(node)
            if call is None:
                learns = needs_fit(node.filter)
                state = self.states.get(node.id)
                filter = self.filter_of(node)
                function = FitCall(filter, y) if learns else PlainCall(filter, state)
                call = Call(function, has_extra=learns)
            calls[node.id] = call
        return self.guarded(calls, seed)

    def learned(self, states: Mapping[NodeId, object]) -> None:
        """Keep what a fit has learned; called once all of it succeeded."""
        for node, kept in cast(Mapping[NodeId, tuple[object, ...]], states).items():
            state, *known = kept
            self.states[node] = state
            if self.memory is not None:
                self.memory.state_changed(node, cast("str | None", known[0] if known else None))
        self.fitted = object()
        self.changed()

    def execute(
        self,
        program: Program,
        inputs: Mapping[NodeId, object],
        extras: Extras,
        phase: Phase,
        seed: int | None = None,
    ) -> object:
        """Run a program without gradients, in the loop that the settings ask for."""
        memory, seed = self.memory, self.seed if seed is None else seed
        if memory is None:
            return self._executed(program, inputs, extras, phase, seed)
        in_order = self.executors.present() is None
        run, held = memory.begin(inputs, None if seed is None else index(seed), watches=in_order)
        if phase == "forward" and not self.listeners:
            known = memory.stored_outputs(program, run, held, self.states)
            if known is not None:
                return known if len(known) > 1 else known[program.exits[0][0]]
        cached = memory.cached(program, run, self.states)
        answer = values_of(self._executed(cached, held, extras, phase, seed))
        if phase == "forward":
            memory.learn_shortcut(program, run, held, self.states)
        return answer

    def _executed(
        self,
        program: Program,
        inputs: Mapping[NodeId, object],
        extras: Extras,
        phase: Phase,
        seed: int | None,
    ) -> object:
        with without_gradients():
            executor = self.executors.present()
            if executor is not None and not drawing():
                return run_parallel(
                    program, inputs, extras, phase, self.name, self.listeners,
                    executor, self._layout(seed),
                )  # fmt: skip
            if self.listeners:
                return run_observed(program, inputs, extras, phase, self.name, self.listeners)
            return run(program, inputs, extras, phase, self.name)

    def _layout(self, seed: int | None) -> Layout:
        nodes = self.topology.nodes.values()
        return Layout(
            self.topology.wiring().predecessors,
            # Modules are here, with all their weights, and so is the connection to workers.
            {one.id for one in nodes if one.target is not None or has_module(one.filter)},
            {one.id for one in nodes if seed is None and not one.filter._deterministic},
        )

    def plain_call(self, node: Node) -> Call:
        """Return how a fitted plain filter answers.

        Raises:
            NotFitted: it learns, and has not yet.
        """
        self.check_fitted([node])
        return Call(PlainCall(self.filter_of(node), self.states.get(node.id)))

    def filter_of(self, node: Node) -> Filter:
        """Return a plain node's filter, or what stands here for it."""
        if node.target is None or self.elsewhere is None:
            return node.filter
        return self.elsewhere(self, node)

    def check_fitted(self, nodes: "list[Node]") -> None:
        """Raise one error that names all of `nodes` that have to be fitted first."""
        missing = [node for node in nodes if needs_fit(node.filter) and node.id not in self.states]
        if missing:
            raise NotFitted(
                f"{listing(node.id for node in missing)} "
                f"{'learns' if len(missing) == 1 else 'learn'} from data and "
                f"{'has' if len(missing) == 1 else 'have'} not been fitted. "
                "Call `g.fit(x, y)` first, or `g.fit(x, y, epochs=0)` before a training loop."
            )

    def reasons(self, nodes: Set[NodeId]) -> dict[NodeId, str]:
        """Return why each of `nodes` last ran or did not; nothing where there is no cache."""
        told = {} if self.memory is None else self.memory.reasons
        return {node: told[node] for node in told.keys() & nodes}

    def name(self, node: NodeId) -> str:
        """Return a node's id with its class, for messages."""
        return f"`{node}` ({self.topology.nodes[node].filter._description()})"

    def _lower_forward(self, bind: Bind, seed: int | None) -> Program:
        plan = self.plan(CompileMode.Inference)
        bound = {node.id: bind(node) for node in self.topology}
        plain = [self.topology.nodes[node] for node, call in bound.items() if call is None]
        self.check_fitted(plain)
        calls = {
            node: self.plain_call(self.topology.nodes[node]) if call is None else call
            for node, call in bound.items()
        }
        return lower(plan.steps(), self.guarded(calls, seed), self.topology.wiring().leaves)

    def guarded(self, calls: dict[NodeId, Call], seed: int | None) -> dict[NodeId, Call]:
        """Seed the nodes that draw, and protect inputs that have other readers."""
        wiring = self.topology.wiring()
        numbers = drawing_numbers(self.topology)
        made = {}
        for node, call in calls.items():
            filter, sources = self.topology.nodes[node].filter, wiring.predecessors[node]
            protects = not sources or any(len(wiring.successors[one]) > 1 for one in sources)
            readers = len(wiring.successors[node])
            drawing = None
            if seed is not None and not filter._deterministic:
                drawing = (seed, numbers[node])
            function = call.function
            if isinstance(function, FitCall):
                function = function.guarded(drawing, protects=protects, readers=readers)
            else:
                function = guarded(function, filter, drawing, protects=protects, readers=readers)
            made[node] = call._replace(function=function)
        return made


def _copied(state: object) -> object:
    # If a caller went on writing to it, it would no longer be the state that the keys stand for.
    try:
        return deepcopy(state)
    except Exception:  # what cannot be copied is shared
        return state


def _plain(node: Node) -> None:
    return None

"""What a graph remembers: puts a look into the cache before each node's turn."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from soma.cache import Cache, Missing, Recall, Undigestible, Unfingerprintable, digest
from soma.core import NodeId, Topology, has_module
from soma.engine._cached import CachedCall, CachedRun
from soma.engine._facts import not_run, refusal_of
from soma.engine._held import Held
from soma.engine._keys import Part, Unkeyed
from soma.engine._program import Instruction, Program, turns_of
from soma.engine._routes import Routes, Stop
from soma.engine._seeding import drawing_numbers

States = Mapping[NodeId, object]

_MOST_PROGRAMS = 64


class Memory:
    """A cache in the service of one graph.

    `reasons` says of each node of the last runs why it ran, or that it did not.
    """

    def __init__(self, cache: Cache, topology: Topology) -> None:
        self.cache = cache
        self.topology = topology
        self.reasons: dict[NodeId, str] = {}
        self._state_digests: dict[NodeId, str] = {}
        self._recalls: dict[NodeId, Recall] = {}
        self._routes: dict[int, Routes] = {}  # by program

    def begin(
        self, inputs: Mapping[NodeId, object], seed: int | None, *, watches: bool
    ) -> tuple[CachedRun, Mapping[NodeId, Held]]:
        """Return what the turns of a run share, and the inputs that they take.

        Args:
            seed: of the run; a part of every key.
            watches: look whether nodes draw from the global generators.
        """
        run = CachedRun(self.cache, seed, self.reasons, watches=watches)
        return run, {node: run.hold(value) for node, value in inputs.items()}

    def around(self, program: Program, run: CachedRun, states: States) -> Program:
        """Return a program that looks before it runs.

        Args:
            states: what the nodes have learned.
        """
        numbers = drawing_numbers(self.topology)
        calls = tuple(
            one._replace(function=self._call(one, run, states, numbers.get(one.node)))
            for one in program.instructions
        )
        return program._replace(instructions=calls, turns=turns_of(calls))

    def straight(
        self, program: Program, run: CachedRun, held: Mapping[NodeId, Held], states: States
    ) -> dict[NodeId, object] | None:
        """Return the outputs of the leaves if the way to them is known and they are there."""
        try:
            start = _start(run, held)
            keys = self._routes_of(program, states).find(start, run.moment)
        except (Unkeyed, Unfingerprintable):
            return None
        if keys is None:
            return None
        outputs: dict[NodeId, object] = {}
        for (leaf, _), key in zip(program.exits, keys, strict=True):
            record = self.cache.find(key)
            if record is None:
                return None
            try:
                outputs[leaf] = self.cache.load(record)
            except Missing:
                return None
        for one in program.instructions:
            self.reasons[one.node] = not_run(one.node)
        return outputs

    def ended(
        self, program: Program, run: CachedRun, held: Mapping[NodeId, Held], states: States
    ) -> None:
        """Remember the way of a run that found every answer."""
        if len(run.found) == len(program.instructions):
            with suppress(Unkeyed, Unfingerprintable):
                routes = self._routes_of(program, states)
                routes.learn(_start(run, held), run.found)

    def learned(self, node: NodeId, known: str | None) -> None:
        """Note that a node has another state now, with its digest where that is known."""
        self._state_digests.pop(node, None)
        if known is not None:
            self._state_digests[node] = known

    def _call(
        self, one: Instruction, run: CachedRun, states: States, number: int | None
    ) -> CachedCall:
        recall = self._recall(one.node)
        return CachedCall(
            one.node,
            recall,
            one.function,
            run,
            refusal=refusal_of(recall.filter, run.seed),
            key=one.key,
            number=number,
            state_digest=partial(self._state_digest, one.node, states),
        )

    def _recall(self, node: NodeId) -> Recall:
        known = self._recalls.get(node)
        if known is None:
            known = self._recalls[node] = Recall(self.topology.nodes[node].filter)
        return known

    def _routes_of(self, program: Program, states: States) -> Routes:
        routes = self._routes.get(id(program))
        if routes is None or routes.program is not program:
            stops = [
                Stop(
                    self._recall(one.node),
                    one.key,
                    partial(self._state_digest, one.node, states),
                )
                for one in program.instructions
            ]
            if len(self._routes) >= _MOST_PROGRAMS:
                self._routes.clear()
            routes = self._routes[id(program)] = Routes(program, stops)
        return routes

    def _state_digest(self, node: NodeId, states: States) -> str | None:
        if node not in states or has_module(self.topology.nodes[node].filter):
            return None  # a module's weights are in its key
        if node not in self._state_digests:
            try:
                self._state_digests[node] = digest(states[node])
            except Undigestible as refusal:
                raise Unkeyed(f"what it learned has no digest: {refusal}") from refusal
        return self._state_digests[node]


def _start(run: CachedRun, held: Mapping[NodeId, Held]) -> tuple[Part, ...]:
    """Return all that a way begins with."""
    return (run.seed, run.settings, *(one.digest() for one in held.values()))

"""What a graph remembers: puts a look into the cache before each node's turn."""

from collections.abc import Mapping
from functools import partial

from soma.cache import Cache, Recall, Undigestible, digest
from soma.core import NodeId, Topology, has_module
from soma.engine._cached import CachedCall, CachedRun
from soma.engine._facts import refusal_of
from soma.engine._held import Held
from soma.engine._keys import Unkeyed
from soma.engine._program import Instruction, Program, turns_of


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

    def around(
        self,
        program: Program,
        inputs: Mapping[NodeId, object],
        states: Mapping[NodeId, object],
        seed: int | None,
        *,
        numbers: Mapping[NodeId, int],
        watches: bool,
    ) -> tuple[Program, Mapping[NodeId, Held]]:
        """Return a program that looks before it runs, and the inputs that it takes.

        Args:
            states: what the nodes have learned.
            seed: of the run; a part of every key.
            numbers: of the nodes that draw, among those of their class: two of them give
                different answers for one seed.
            watches: look whether nodes draw from the global generators.
        """
        run = CachedRun(self.cache, seed, self.reasons, watches=watches)
        calls = tuple(
            one._replace(function=self._call(one, run, states, numbers.get(one.node)))
            for one in program.instructions
        )
        held = {node: run.hold(value) for node, value in inputs.items()}
        return program._replace(instructions=calls, turns=turns_of(calls)), held

    def learned(self, node: NodeId, known: str | None) -> None:
        """Note that a node has another state now, with its digest where that is known."""
        self._state_digests.pop(node, None)
        if known is not None:
            self._state_digests[node] = known

    def _call(
        self,
        one: Instruction,
        run: CachedRun,
        states: Mapping[NodeId, object],
        number: int | None,
    ) -> CachedCall:
        filter = self.topology.nodes[one.node].filter
        return CachedCall(
            one.node,
            self._recalls.setdefault(one.node, Recall(filter)),
            one.function,
            run,
            refusal=refusal_of(filter, run.seed),
            key=one.key,
            number=number,
            state_digest=partial(self._state_digest, one.node, states),
        )

    def _state_digest(self, node: NodeId, states: Mapping[NodeId, object]) -> str | None:
        if node not in states or has_module(self.topology.nodes[node].filter):
            return None  # a module's weights are in its key
        if node not in self._state_digests:
            try:
                self._state_digests[node] = digest(states[node])
            except Undigestible as refusal:
                raise Unkeyed(f"what it learned has no digest: {refusal}") from refusal
        return self._state_digests[node]

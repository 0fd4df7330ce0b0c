"""`Memory`: the cache of one graph, which is asked before each node's turn.

`_cached.py` takes the turns; `_shortcuts.py` spares them where nothing has changed.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from soma.cache import Cache, Missing, Recall, Undigestible, Unfingerprintable, digest
from soma.core import NodeId, Topology, has_module
from soma.engine._cached import CachedCall
from soma.engine._facts import refusal_of
from soma.engine._held import Held
from soma.engine._keys import Unkeyed
from soma.engine._program import Instruction, Program, turns_of
from soma.engine._seeding import drawing_numbers
from soma.engine._shortcuts import NodeParts, Parts, Shortcuts
from soma.engine._turn import CachedRun

States = Mapping[NodeId, object]

_MOST_PROGRAMS = 64  # as many as a runner keeps


class Memory:
    """The cache of one graph; `reasons` holds for each node why it last ran or did not."""

    def __init__(self, cache: Cache, topology: Topology) -> None:
        self.cache = cache
        self.topology = topology
        self.reasons: dict[NodeId, str] = {}
        self._state_digests: dict[NodeId, str] = {}
        self._recalls: dict[NodeId, Recall] = {}
        self._shortcuts: dict[int, Shortcuts] = {}  # by the `id` of their program

    def begin(
        self, inputs: Mapping[NodeId, object], seed: int | None, *, watches: bool
    ) -> tuple[CachedRun, Mapping[NodeId, Held]]:
        """Begin a run: return what its nodes share, and its inputs in a form that has digests.

        Args:
            seed: a part of every key.
            watches: check whether nodes draw from the global random generators.
        """
        run = CachedRun(self.cache, seed, self.reasons, watches=watches)
        return run, {node: run.hold(value) for node, value in inputs.items()}

    def cached(self, program: Program, run: CachedRun, states: States) -> Program:
        """Return the program with nodes that ask the cache before they compute."""
        numbers = drawing_numbers(self.topology)
        calls = tuple(
            one._replace(function=self._call(one, run, states, numbers.get(one.node)))
            for one in program.instructions
        )
        return program._replace(instructions=calls, turns=turns_of(calls))

    def stored_outputs(
        self, program: Program, run: CachedRun, held: Mapping[NodeId, Held], states: States
    ) -> dict[NodeId, object] | None:
        """Return the leaves' outputs by a shortcut; None: there is none, or one is not stored."""
        shortcuts = self._shortcuts_of(program, states)
        try:
            keys = shortcuts.find(_start(run, held), run.moment)
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
        self.reasons.update(shortcuts.reasons)
        return outputs

    def learn_shortcut(
        self, program: Program, run: CachedRun, held: Mapping[NodeId, Held], states: States
    ) -> None:
        """Remember where the inputs of this run led, if every answer was stored."""
        if len(run.found) == len(program.instructions):
            with suppress(Unkeyed, Unfingerprintable):
                self._shortcuts_of(program, states).learn(_start(run, held), run.found)

    def state_changed(self, node: NodeId, digest: str | None) -> None:
        """Forget the digest of a node's old state, and keep that of the new one if known."""
        self._state_digests.pop(node, None)
        if digest is not None:
            self._state_digests[node] = digest

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

    def _shortcuts_of(self, program: Program, states: States) -> Shortcuts:
        known = self._shortcuts.get(id(program))
        if known is None or known.program is not program:
            nodes = [
                NodeParts(
                    recall := self._recall(one.node),
                    one.key,
                    # A module's weights are in its key.
                    None
                    if has_module(recall.filter)
                    else partial(self._state_digest, one.node, states),
                )
                for one in program.instructions
            ]
            if len(self._shortcuts) >= _MOST_PROGRAMS:
                self._shortcuts.clear()
            known = self._shortcuts[id(program)] = Shortcuts(program, nodes)
        return known

    def _state_digest(self, node: NodeId, states: States) -> str | None:
        if node not in states or has_module(self.topology.nodes[node].filter):
            return None  # a module's weights are in its key
        if node not in self._state_digests:
            try:
                self._state_digests[node] = digest(states[node])
            except Undigestible as refusal:
                raise Unkeyed(f"what it learned has no digest: {refusal}") from refusal
        return self._state_digests[node]


def _start(run: CachedRun, held: Mapping[NodeId, Held]) -> Parts:
    """Return what a shortcut starts from."""
    return (run.seed, run.settings, *(one.digest() for one in held.values()))

"""A node's turn with a cache: look first, compute what is not stored, keep the answer.

`CachedCall` takes the place of the node's function. It takes and gives `Held` values, so a run
whose answers are all stored reads one record for each node, and the values of the leaves alone.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, cast
from warnings import warn

from soma.cache import (
    Missing,
    Recall,
    Unfingerprintable,
    became,
    combine,
)
from soma.core import Filter, NodeId
from soma.engine._facts import UNKEYED, explained, facts_of, lost, not_run
from soma.engine._held import Given, Held, values_of
from soma.engine._keys import Key, Unkeyed
from soma.engine._plain import FitCall, Function
from soma.engine._seeding import generator_marks
from soma.engine._shortcuts import Found, own_parts
from soma.engine._turn import ABSENT, CachedRun, Turn
from soma.errors import SomaWarning

_OUTPUT: Literal["output"] = "output"  # what a key is for
_STATE: Literal["state"] = "state"


class CachedCall:
    """One node in a cached run."""

    __slots__ = ("filter", "function", "key", "node", "number", "recall", "refusal", "run",
                 "state_digest")  # fmt: skip

    def __init__(
        self,
        node: NodeId,
        recall: Recall,
        function: Function,
        run: CachedRun,
        *,
        refusal: str | None,
        key: Key | None,
        number: int | None,
        state_digest: Callable[[], str | None],
    ) -> None:
        self.node = node
        self.recall = recall
        self.filter: Filter = recall.filter
        self.function = function
        self.run = run
        self.refusal = refusal  # why its answers are never stored
        self.key = key
        self.number = number
        self.state_digest = state_digest

    def __call__(self, given: object) -> object:
        turn = self.prepare(given)
        if turn.found is not None:
            return self.finish(turn)
        key = turn.key or turn.state_key
        if key is None:
            return self._run(turn)
        return self.run.flights.once(key, partial(self._run, turn))

    def prepare(self, given: object) -> Turn:
        """Return the turn with all that the cache knows of it."""
        turn = Turn(cast(Given, given), refusal=self.refusal)
        if turn.refusal is None:
            try:
                self._look_up(turn)
            except Unkeyed as refusal:
                turn.refusal = str(refusal)
            except Unfingerprintable as refusal:
                turn.refusal = f"`{refusal.path}` {UNKEYED}: {refusal.reason}"
            if turn.refusal is not None:
                turn.key = turn.state_key = turn.found = None
        if turn.refusal is not None:
            self.run.reasons[self.node] = f"`{self.node}` runs each time: {turn.refusal}"
        return turn

    def missing(self, turn: Turn) -> Function:
        """Return the function of plain values that computes what is not stored."""
        if isinstance(self.function, FitCall) and turn.state is not ABSENT:
            return partial(self.function.answer, state=turn.state)
        return self.function

    def finish(self, turn: Turn, result: object = ABSENT) -> object:
        """Keep what was computed, if anything was, and return what the next nodes read."""
        if isinstance(self.function, FitCall) and turn.state is ABSENT:
            result, (turn.state,) = cast(tuple[object, tuple[object]], result)
            self._keep_state(turn)
        if turn.found is not None:
            held = Held(digest=turn.found.digest, fetch=lambda: self._load(turn))
        else:
            held = self._keep_output(turn, result)
        if isinstance(self.function, FitCall):
            return held, (turn.state, turn.state_digest)
        return held

    def _look_up(self, turn: Turn) -> None:
        run, given = self.run, turn.given
        turn.what = what = self.recall.identity(run.moment)
        read = given if isinstance(given, dict) else {"": given}
        turn.inputs = inputs = {name: _digest(held, "input", name) for name, held in read.items()}
        # A fan-in sees the names of what it reads; any other node does not.
        named = (
            [part for pair in inputs.items() for part in pair]
            if len(inputs) > 1
            else [*inputs.values()]
        )
        turn.call = extra = () if self.key is None else self.key.parts()
        drawn = (run.seed, self.number)
        turn.base = (what.digest, *drawn, run.settings, len(extra), *extra, *named)
        if isinstance(self.function, FitCall):
            turn.targets = _digest(run.hold(self.function.y), "labels")
            turn.state_key = combine(_STATE, turn.targets, *turn.base)
            record = run.cache.find(turn.state_key)
            if record is not None:
                try:
                    turn.state = run.cache.load(record)
                except Missing:
                    record = None
            if record is None:
                self._explain(turn, _STATE, turn.state_key)
                return
            turn.state_digest = record.digest
        else:
            turn.state_digest = self.state_digest()
        self._look_up_output(turn)

    def _look_up_output(self, turn: Turn) -> None:
        turn.key = combine(_OUTPUT, turn.state_digest, *turn.base)
        turn.found = self.run.cache.find(turn.key)
        if turn.found is None:
            self._explain(turn, _OUTPUT, turn.key)
        else:
            assert turn.what is not None
            parts = own_parts(self.filter, turn.what.digest, turn.state_digest, turn.call)
            self.run.found[self.node] = Found(turn.key, parts)
            self.run.reasons[self.node] = not_run(self.node)

    def _run(self, turn: Turn) -> object:
        return self.finish(turn, self._computed(turn))

    def _computed(self, turn: Turn) -> object:
        function, values = self.missing(turn), values_of(turn.given)
        if not self.run.watches or turn.refusal is not None or not self.filter._deterministic:
            return function(values)
        before = generator_marks()
        result = function(values)
        if generator_marks() != before:
            turn.refusal = (
                "it draws from a global random generator, so one answer cannot stand for the next; "
                "say `_deterministic = False`, and give the graph a seed to have it stored"
            )
            turn.key = turn.state_key = None
            self.run.reasons[self.node] = f"`{self.node}` runs each time: {turn.refusal}"
            warn(f"`{self.node}`: {turn.refusal}.", SomaWarning, stacklevel=2)
        return result

    def _keep_state(self, turn: Turn) -> None:
        if turn.state_key is None:
            return
        kept = self.run.cache.keep(turn.state_key, turn.state, _STATE, self._facts(turn))
        if kept.reason is None:
            self._note_last(turn, _STATE, turn.state_key)
        turn.state_digest = kept.digest
        if kept.digest is None:
            turn.refusal = f"what it learned has no digest: {kept.reason}"
        else:
            turn.key = combine(_OUTPUT, kept.digest, *turn.base)
            turn.found = self.run.cache.find(turn.key)
        if kept.reason is not None:
            self.run.reasons[self.node] = (
                f"`{self.node}` learns each time: what it learned cannot be stored: {kept.reason}"
            )

    def _keep_output(self, turn: Turn, result: object) -> Held:
        if turn.key is None:
            return Held(result)
        kept = self.run.cache.keep(turn.key, result, _OUTPUT, self._facts(turn))
        if kept.reason is not None:
            self.run.reasons[self.node] = (
                f"`{self.node}` runs each time: its answer cannot be stored: {kept.reason}"
            )
        else:
            self._note_last(turn, _OUTPUT, turn.key)
        return Held(
            result, digest=kept.digest, unkeyed=kept.reason if kept.digest is None else None
        )

    def _load(self, turn: Turn) -> object:
        """Return the stored value of a turn, computed again if its bytes are gone by now."""
        assert turn.found is not None
        assert turn.key is not None
        try:
            return self.run.cache.load(turn.found)
        except Missing:
            self._note_reason(
                turn, lost(self.node, _OUTPUT, became(self.run.cache.store, turn.key))
            )
            result = self.missing(turn)(values_of(turn.given))
            self.run.cache.keep(turn.key, result, _OUTPUT, self._facts(turn))
            return result

    def _note_last(self, turn: Turn, kind: str, key: str) -> None:
        """Note a record as the node's last one, and as its last of this class and kind."""
        self.run.cache.note_last(self.node, _sort(turn, kind), key)

    def _facts(self, turn: Turn) -> dict[str, object]:
        """Return what a record says of the turn, to explain why a later one ran."""
        assert turn.what is not None
        return facts_of(
            self.node,
            turn.what,
            turn.inputs,
            self.run.seed,
            self.run.settings,
            turn.call,
            targets=turn.targets,
            state=turn.state_digest,
            why=turn.why,
        )

    def _explain(self, turn: Turn, kind: str, key: str) -> None:
        cache = self.run.cache
        last = cache.last(self.node, _sort(turn, kind))
        if last == key:
            self._note_reason(turn, lost(self.node, kind, became(cache.store, key)))
        else:
            then = None if last is None else cache.find(last)
            self._note_reason(
                turn, explained(self.node, self._facts(turn), then, first=last is None)
            )

    def _note_reason(self, turn: Turn, text: str) -> None:
        turn.why = text
        self.run.reasons[self.node] = text


def _sort(turn: Turn, kind: str) -> str:
    """Return the class and kind as one text: only records of one sort are compared."""
    assert turn.what is not None
    return _sort_of(kind, turn.what.class_name)


@lru_cache(maxsize=4_096)
def _sort_of(kind: str, class_name: str) -> str:
    return combine(kind, class_name)


def _digest(held: Held, what: str, source: NodeId = "") -> str:
    """Return the digest of what a node reads, or say which part of it has none."""
    try:
        return held.digest()
    except Unkeyed as refusal:
        of = f"{what} from `{source}`" if source else what
        raise Unkeyed(f"its {of} {UNKEYED}: {refusal}") from refusal

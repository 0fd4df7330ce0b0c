"""Where the inputs of earlier runs led: from their digests straight to the keys of the leaves.

A key follows from what filters are, what they learned, the settings and the inputs. While the
first three are as they were, inputs seen before lead to the same leaves, and there is nothing to
look up on the way.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from soma.cache import Moment, Recall
from soma.core import NodeId
from soma.engine._keys import Key, Part
from soma.engine._program import Program

_MOST = 4_096  # inputs remembered


class Stop(NamedTuple):
    """One node on the way, and what its key is made of beside its inputs."""

    recall: Recall
    call: Key | None
    state: Callable[[], str | None]

    def facts(self, moment: Moment) -> tuple[Part, ...]:
        """Return what it is now.

        Raises:
            Unfingerprintable, Unkeyed: it cannot be told.
        """
        recall, call = self.recall, self.call
        return (
            recall.identity(moment).digest,
            recall.filter._cacheable,
            recall.filter._deterministic,
            self.state(),
            *(() if call is None else call.parts()),
        )


class Routes:
    """The ways through one program.

    Args:
        program: whose ways these are; kept, so that no other one takes its place.
    """

    def __init__(self, program: Program, stops: Sequence[Stop]) -> None:
        self.program = program
        self._stops = stops
        self._facts: list[tuple[Part, ...]] = []
        self._leaves: dict[tuple[Part, ...], tuple[str, ...]] = {}

    def find(self, start: tuple[Part, ...], moment: Moment) -> tuple[str, ...] | None:
        """Return the keys of the leaves, in the program's order; None: this way is not known.

        Args:
            start: digests of the inputs, the seed and the settings.
        """
        leaves = self._leaves.get(start)
        if leaves is None or [stop.facts(moment) for stop in self._stops] != self._facts:
            return None
        return leaves

    def learn(
        self, start: tuple[Part, ...], keys: Mapping[NodeId, str | None], moment: Moment
    ) -> None:
        """Remember a run that found the answers of all nodes."""
        leaves = tuple(keys[leaf] or "" for leaf, _ in self.program.exits)
        facts = [stop.facts(moment) for stop in self._stops]
        if facts != self._facts or len(self._leaves) >= _MOST:
            self._facts, self._leaves = facts, {}
        self._leaves[start] = leaves

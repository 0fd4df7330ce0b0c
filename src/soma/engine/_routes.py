"""Where the inputs of earlier runs led: from their digests straight to the keys of the leaves.

A key follows from what filters are, what they learned, the settings and the inputs. While the
first three are as they were, inputs seen before lead to the same leaves, and there is nothing to
look up on the way.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from soma.cache import Moment, Recall
from soma.core import Filter, NodeId
from soma.engine._keys import Key, Part
from soma.engine._program import Program

_Facts = list[tuple[Part, ...]]  # of each node on the way

_MOST = 4_096  # inputs remembered


Facts = tuple[Part, ...]  # what the key of a node is made of beside its inputs


class Found(NamedTuple):
    """A node's answer was there: under which key, and by which facts."""

    key: str
    facts: Facts


def facts_of_key(filter: Filter, identity: str, state: str | None, call: Facts) -> Facts:
    """Return what a node's key is made of beside its inputs, and whether it has one at all."""
    return (identity, filter._cacheable, filter._deterministic, state, *call)


class Stop(NamedTuple):
    """One node on the way, and what its key is made of beside its inputs."""

    recall: Recall
    call: Key | None
    state: Callable[[], str | None]

    def facts(self, moment: Moment) -> Facts:
        """Return what it is now.

        Raises:
            Unfingerprintable, Unkeyed: it cannot be told.
        """
        filter, call = self.recall.filter, self.call
        parts = () if call is None else call.parts()
        return facts_of_key(filter, self.recall.identity(moment).digest, self.state(), parts)


class Routes:
    """The ways through one program.

    Args:
        program: whose ways these are; kept, so that no other one takes its place.
    """

    def __init__(self, program: Program, stops: Sequence[Stop]) -> None:
        self.program = program
        self._stops = stops
        # Both in one attribute: another thread must not see one without the other.
        self._known: tuple[list[Facts], dict[tuple[Part, ...], tuple[str, ...]]] = ([], {})

    def find(self, start: tuple[Part, ...], moment: Moment) -> tuple[str, ...] | None:
        """Return the keys of the leaves, in the program's order; None: this way is not known.

        Args:
            start: digests of the inputs, the seed and the settings.
        """
        facts, leaves = self._known
        found = leaves.get(start)
        if found is None or [stop.facts(moment) for stop in self._stops] != facts:
            return None
        return found

    def learn(self, start: tuple[Part, ...], found: Mapping[NodeId, Found]) -> None:
        """Remember a run that found the answers of all nodes."""
        leaves = tuple(found[leaf].key for leaf, _ in self.program.exits)
        now = [found[one.node].facts for one in self.program.instructions]
        facts, known = self._known
        if now != facts or len(known) >= _MOST:
            self._known = (now, {start: leaves})
        else:
            known[start] = leaves

"""Shortcuts: from the inputs of an earlier run straight to the keys of the leaves.

A node's key follows from its filter, its state, the settings and its inputs. While the first three
stay the same, inputs seen before lead to the same leaves, so the nodes between need no look-up.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from soma.cache import Glance, Moment, Recall
from soma.core import Filter, NodeId
from soma.engine._facts import not_run
from soma.engine._keys import Key, Part
from soma.engine._program import Program

_MOST = 4_096  # inputs remembered
_SAYS = attrgetter("_cacheable", "_deterministic")

Parts = tuple[Part, ...]


class Found(NamedTuple):
    """A node's answer that was stored: its key, and the parts of that beside its inputs."""

    key: str
    parts: Parts


def own_parts(filter: Filter, identity: str, state: str | None, call: Parts) -> Parts:
    """Return what a node's key is made of beside its inputs, and whether it has a key at all."""
    return (identity, filter._cacheable, filter._deterministic, state, *call)


class NodeParts(NamedTuple):
    """Reads the parts of one node's key beside its inputs, as they are now."""

    recall: Recall
    call: Key | None
    state_digest: Callable[[], str | None] | None  # None: it has no state beside its filter

    def now(self, moment: Moment) -> Parts:
        """Return them.

        Raises:
            Unfingerprintable, Unkeyed: one of them has no digest.
        """
        call = () if self.call is None else self.call.parts()
        identity = self.recall.identity(moment).digest
        state = None if self.state_digest is None else self.state_digest()
        return own_parts(self.recall.filter, identity, state, call)


class _Known(NamedTuple):
    """What the nodes were like in earlier runs, and where inputs led while they were so.

    In one object: another thread must not see one part of it without the others.
    """

    parts: Sequence[Parts]
    leaves: dict[Parts, tuple[str, ...]]
    # What to look at first; None: all parts have to be read.
    glance: Glance | None = None
    unseen: Sequence[object] = ()  # what a glance does not see


class Shortcuts:
    """The shortcuts through one program.

    Args:
        program: kept here, so that no other program gets its `id`.
        nodes: those of the program, in its order.
    """

    def __init__(self, program: Program, nodes: Sequence[NodeParts]) -> None:
        self.program = program
        self.reasons = {one.node: not_run(one.node) for one in program.instructions}
        self._nodes = nodes
        self._filters = [node.recall.filter for node in nodes]
        self._states = [node.state_digest for node in nodes if node.state_digest is not None]
        self._calls = [node.call for node in nodes if node.call is not None]
        self._known = _Known([], {})

    def find(self, start: Parts, moment: Moment) -> tuple[str, ...] | None:
        """Return the keys of the leaves, in the program's order; None: these inputs are new.

        Args:
            start: the seed, the settings and the digests of the inputs.
        """
        known = self._known
        found = known.leaves.get(start)
        if found is None or not (
            self._same_at_a_glance(known, moment) or self._same(known, moment)
        ):
            return None
        return found

    def learn(self, start: Parts, found: Mapping[NodeId, Found]) -> None:
        """Remember a run in which the answers of all nodes were stored."""
        leaves = tuple(found[leaf].key for leaf, _ in self.program.exits)
        now = [found[one.node].parts for one in self.program.instructions]
        known = self._known
        if now != known.parts or len(known.leaves) >= _MOST:
            self._known = _Known(now, {start: leaves})
        else:
            known.leaves[start] = leaves

    def _same_at_a_glance(self, known: _Known, moment: Moment) -> bool:
        glance = known.glance
        return glance is not None and glance.holds(moment) and self._unseen() == known.unseen

    def _same(self, known: _Known, moment: Moment) -> bool:
        """Whether all parts are what they were; if so, a glance will do the next time."""
        glance, unseen = Glance(self._filters, moment), self._unseen()
        if [node.now(moment) for node in self._nodes] != known.parts:
            return False
        if all(node.recall.plain for node in self._nodes):
            self._known = known._replace(glance=glance, unseen=unseen)
        return True

    def _unseen(self) -> list[object]:
        # Weights that are written to stay the same objects.
        calls = (call.parts() for call in self._calls)
        return [*map(_SAYS, self._filters), *(state() for state in self._states), *calls]

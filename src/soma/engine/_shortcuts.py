"""Shortcuts: from the inputs of an earlier run straight to the keys of the leaves.

A node's key follows from its filter, its state, the settings and its inputs. While the first three
stay the same, inputs seen before lead to the same leaves, so the nodes between need no look-up.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from soma.cache import Moment, Recall
from soma.core import Filter, NodeId
from soma.engine._keys import Key, Part
from soma.engine._program import Program

_MOST = 4_096  # inputs remembered

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
    state_digest: Callable[[], str | None]

    def now(self, moment: Moment) -> Parts:
        """Return them.

        Raises:
            Unfingerprintable, Unkeyed: one of them has no digest.
        """
        call = () if self.call is None else self.call.parts()
        identity = self.recall.identity(moment).digest
        return own_parts(self.recall.filter, identity, self.state_digest(), call)


class Shortcuts:
    """The shortcuts through one program.

    Args:
        program: kept here, so that no other program gets its `id`.
        nodes: those of the program, in its order.
    """

    def __init__(self, program: Program, nodes: Sequence[NodeParts]) -> None:
        self.program = program
        self._nodes = nodes
        # Both in one attribute: another thread must not see one without the other.
        self._known: tuple[list[Parts], dict[Parts, tuple[str, ...]]] = ([], {})

    def find(self, start: Parts, moment: Moment) -> tuple[str, ...] | None:
        """Return the keys of the leaves, in the program's order; None: these inputs are new.

        Args:
            start: the seed, the settings and the digests of the inputs.
        """
        parts, leaves = self._known
        found = leaves.get(start)
        if found is None or [node.now(moment) for node in self._nodes] != parts:
            return None
        return found

    def learn(self, start: Parts, found: Mapping[NodeId, Found]) -> None:
        """Remember a run in which the answers of all nodes were stored."""
        leaves = tuple(found[leaf].key for leaf, _ in self.program.exits)
        now = [found[one.node].parts for one in self.program.instructions]
        parts, known = self._known
        if now != parts or len(known) >= _MOST:
            self._known = (now, {start: leaves})
        else:
            known[start] = leaves

"""A bundle becomes nodes again: classes are found, filters made, links and states put back.

The classes of all nodes are found before the first filter is made, so a bundle with a node of a
class that is not allowed has run nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from soma.checkpoint._bundle import Reader, reason_of
from soma.checkpoint._filters import Maker
from soma.checkpoint._manifest import NodeEntry
from soma.checkpoint._saved import Saved
from soma.core import Filter, NodeId, Topology
from soma.draw import printable
from soma.errors import CheckpointError, MissingExtra

ReadWeights = Callable[[NodeId], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LoadedNode:
    """One node that was made again."""

    id: NodeId
    filter: Filter
    saved: Saved
    has_state: bool


def load_nodes(
    reader: Reader, maker: Maker, read_weights: ReadWeights | None
) -> Iterator[LoadedNode]:
    """Make the nodes of a bundle again, one after the other.

    Args:
        read_weights: gives the tensors of a node's module by name.

    Raises:
        CheckpointError: a class is not allowed, or cannot be made again.
    """
    entries = reader.manifest.nodes
    classes = [_class_of(entry, maker) for entry in entries]
    for entry, cls in zip(entries, classes, strict=True):
        try:
            yield _made(entry, cls, reader, maker, read_weights)
        except MissingExtra:
            raise
        except Exception as error:  # of the class's own code too
            cause = error.__cause__ if isinstance(error, CheckpointError) else error
            raise CheckpointError(
                f"`{printable(entry.id)}` cannot be made again: {reason_of(error)}"
            ) from cause


def link_nodes(topology: Topology, reader: Reader) -> None:
    """Put links, and what the names of inlined graphs stand for, between nodes.

    Raises:
        ValueError: they are between others.
    """
    manifest = reader.manifest
    for name, ends in manifest.groups.items():
        if name in topology.nodes or not all(id in topology.nodes for end in ends for id in end):
            raise ValueError(f"the inlined graph {name[:80]!r} is of other nodes")
        topology.groups[name] = tuple(ends[0]), tuple(ends[1])
    for source, target in manifest.links:
        topology.connect(source, target)


def _class_of(entry: NodeEntry, maker: Maker) -> type[Filter]:
    try:
        return maker.allowed.subclass(entry.class_module, entry.class_name, Filter)
    except CheckpointError as error:
        raise CheckpointError(f"node `{printable(entry.id)}`: {error}") from error.__cause__


def _made(
    entry: NodeEntry,
    cls: type[Filter],
    reader: Reader,
    maker: Maker,
    read_weights: ReadWeights | None,
) -> LoadedNode:
    saved = maker.saved(reader.value(entry.arguments))
    if entry.state is not None:
        saved.state = reader.value(entry.state)
    if read_weights is not None:
        saved.weights = read_weights(entry.id)
    maker.migrate(cls, saved, entry.class_version, f"`{printable(entry.id)}`")
    filter = maker.make(cls, saved)
    has_state = entry.state is not None or saved.state is not None
    return LoadedNode(entry.id, filter, saved, has_state)

"""A graph becomes a bundle: its nodes, their states, and what the wing that knows modules adds."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any

from soma.checkpoint._bundle import Writer
from soma.checkpoint._filters import arguments_of, named_class
from soma.checkpoint._manifest import FORMAT, Manifest, NodeEntry
from soma.checkpoint._random import random_state
from soma.core import Node, NodeId, has_module
from soma.engine import Runner
from soma.errors import CheckpointError


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What is saved beside nodes and states."""

    weights: Mapping[NodeId, dict[str, Any]] = field(default_factory=dict)
    training: Any = None
    random: bool = False
    extra: object = None


def graph_manifest(writer: Writer, runner: Runner, name: str, additions: Additions) -> Manifest:
    """Return the manifest of a graph, with its values in `writer`.

    Raises:
        CheckpointError: a node cannot be saved; the message says which and what to do.
    """
    topology = runner.topology
    nodes = [
        _entry(writer, runner, number, node, additions.weights.get(node.id, {}))
        for number, node in enumerate(topology.nodes.values())
    ]
    state = random_state() if additions.random else None
    extra = additions.extra
    return Manifest(
        format=FORMAT,
        soma=sys.modules["soma"].__version__,  # for people: `format` decides
        name=name,
        seed=None if runner.seed is None else index(runner.seed),
        nodes=nodes,
        links=list(topology.links),
        groups={name: (list(first), list(last)) for name, (first, last) in topology.groups.items()},
        training=additions.training,
        random=None if state is None else writer.value("random", state, "the random state"),
        extra=None if extra is None else writer.value("extra", extra, "`extra`"),
    )


def _entry(
    writer: Writer, runner: Runner, number: int, node: Node, weights: dict[str, Any]
) -> NodeEntry:
    cls = named_class(node.filter)
    told = f"`{node.id}` ({node.filter._description()})"
    place = f"n/{number:04}"
    try:
        arguments = arguments_of(node.filter)
    except CheckpointError as error:
        raise CheckpointError(f"{told} cannot be saved: {error}") from error.__cause__
    entry = NodeEntry(
        id=node.id,
        class_module=cls.__module__,
        class_name=cls.__qualname__,
        class_version=cls.class_version,
        arguments=writer.value(f"{place}.arguments", arguments, f"the arguments of {told}"),
        weights=weights,
    )
    # A built module has its weights in place of a state.
    if node.id in runner.states and "" not in weights:
        state = runner.states[node.id]
        if has_module(node.filter) and isinstance(state, Mapping):
            state = dict(state)  # weights that wait for the module to be built
        entry.state = writer.value(f"{place}.state", state, f"the state of {told}")
    return entry

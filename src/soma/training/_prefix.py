"""The part of a graph that training does not change: it runs once, its outputs are sliced."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import cast

import numpy as np

from soma.core import Node, NodeId, Topology, per_root
from soma.engine import Program, Runner, describe, lower, row_count
from soma.errors import InvalidInput
from soma.training._rows import Index, positions, take


@dataclass(frozen=True, slots=True)
class Prefix:
    """What the opaque prefix of a graph gave for some data.

    `g.forward(prefix)` goes on from here; `prefix[0:64]` and `prefix[positions]` take rows.
    """

    values: Mapping[NodeId, object]  # of the nodes that others read on, and the roots' inputs
    made_for: object  # the topology and the fitted states, as `stamp` tells them apart

    def __repr__(self) -> str:
        return (
            f"Prefix({', '.join(f'{node}: {describe(one)}' for node, one in self.values.items())})"
        )

    def __len__(self) -> int:
        """The number of rows."""
        counts = {node: row_count(value) for node, value in self.values.items()}
        if len(set(counts.values())) != 1 or None in counts.values():
            told = ", ".join(f"`{node}`: {count}" for node, count in counts.items())
            raise InvalidInput(
                "the outputs before the first module do not have the same number of rows "
                f"({told}), so they cannot be cut into batches. A filter there must keep one row "
                "a sample, or be marked `_deterministic = False` to run for each batch."
            )
        return next(iter(counts.values())) or 0

    def __getitem__(self, rows: "Index | list[int] | list[bool] | np.ndarray") -> "Prefix":
        """Return the same for some rows: a slice, a mask of booleans, or positions."""
        if isinstance(rows, str | int):
            raise InvalidInput(
                f"a prefix was asked for {rows!r}; it gives rows by a slice, a mask or positions. "
                "Its `values` are by node, and for a DataLoader `g.module().tensors(prefix)` makes "
                "tensors of them."
            )
        parts = chain.from_iterable(
            value if isinstance(value, tuple) else (value,) for value in self.values.values()
        )
        counts = {row_count(part) for part in parts}
        count = counts.pop() if len(counts) == 1 else None
        index = positions(rows, len(self) if count is None else count)
        return Prefix(
            {node: take(value, index) for node, value in self.values.items()}, self.made_for
        )


def prefix_nodes(topology: Topology) -> set[NodeId]:
    """Return the nodes that no module comes before, that pass no gradient and do not draw."""
    wiring = topology.wiring()
    inside: set[NodeId] = set()
    for node in topology:
        constant = not node.filter.meta().differentiable and node.filter._deterministic
        if constant and all(one in inside for one in wiring.predecessors[node.id]):
            inside.add(node.id)
    return inside


def frontier(topology: Topology, inside: set[NodeId]) -> list[NodeId]:
    """Return the prefix's nodes whose output the rest of the graph, or the caller, reads."""
    wiring = topology.wiring()
    return [
        node
        for node in wiring.order
        if node in inside
        and (
            not wiring.successors[node] or any(one not in inside for one in wiring.successors[node])
        )
    ]


def run_prefix(runner: Runner, x: object) -> Prefix:
    """Run the prefix on `x`, without gradients."""
    topology = runner.topology
    inside = prefix_nodes(topology)
    program = runner.program("prefix", partial(_lower_prefix, runner, inside))
    roots = topology.wiring().roots
    inputs = per_root(x, roots)
    kept = frontier(topology, inside)
    values = {root: inputs[root] for root in roots if root not in inside}
    if kept:
        output = runner.execute(program, inputs, {}, "forward")
        values |= {kept[0]: output} if len(kept) == 1 else cast(dict[NodeId, object], output)
    return Prefix(values, stamp(runner))


def stamp(runner: Runner) -> object:
    """Return what tells the present outputs of a prefix from earlier ones and other graphs'."""
    return runner.fitted, runner.topology.version


def _lower_prefix(runner: Runner, inside: set[NodeId]) -> Program:
    topology = runner.topology
    steps = [step for step in runner.plan("differentiable").steps() if step.node in inside]
    nodes: list[Node] = [topology.nodes[node] for node in inside]
    runner.check_fitted(nodes)
    calls = {node.id: runner.plain_call(node) for node in nodes}
    return lower(steps, runner.guarded(calls, runner.seed), frontier(topology, inside))

"""A plan lowered to slots: what the loops in `_run.py` walk, with nothing left to look up.

Each instruction calls one function on the content of one slot (or, at a fan-in, on a dict
of several) and puts the answer into another. A slot is given to a new value as soon as its
last reader has run, so no value lives longer than it is needed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from soma.compiler import Execute
from soma.core import NodeId
from soma.engine._keys import Key


class Call(NamedTuple):
    """How one node answers: `function(input)`.

    With `has_extra` the answer is a pair `(output, extra)`; an extra that is not empty is kept
    by node: the auxiliary signals in training, a tuple of the learned state in fit.
    """

    function: Callable[[object], object]
    has_extra: bool = False
    key: Key | None = None  # what the answer depends on beside the filter and its inputs


class Instruction(NamedTuple):
    """One node's turn."""

    function: Callable[[object], object]
    source: int  # the slot to read; unused at a fan-in
    target: int
    fan_in: tuple[tuple[NodeId, int], ...] | None
    done: tuple[int, ...]  # at a fan-in: slots that no one reads after it, besides `target`
    has_extra: bool
    node: NodeId
    key: Key | None


# What the bare loop unpacks, as a plain tuple since those unpack fastest: function, source, target,
# node, and the whole instruction where there is more to do than call and keep.
Turn = tuple[Callable[[object], object], int, int, NodeId, Instruction | None]


class Program(NamedTuple):
    """Instructions in a valid order, and where input goes in and output comes out."""

    instructions: tuple[Instruction, ...]
    turns: tuple[Turn, ...]
    size: int
    roots: tuple[NodeId, ...]
    entries: tuple[tuple[NodeId, int], ...]
    exits: tuple[tuple[NodeId, int], ...]

    def collect(self, slots: Sequence[object]) -> object:
        """Return the output of the one leaf, or a dict of all of them."""
        if len(self.exits) == 1:
            return slots[self.exits[0][1]]
        return {leaf: slots[slot] for leaf, slot in self.exits}


def lower(
    steps: Sequence[Execute],
    calls: Mapping[NodeId, Call],
    kept: Sequence[NodeId],
    given: Sequence[NodeId] = (),
) -> Program:
    """Allot slots to `steps`.

    Args:
        steps: the nodes in a valid order.
        calls: what each of them does.
        kept: the nodes whose outputs are the program's answer.
        given: nodes whose outputs come from outside; they are not run.
    """
    outside, answered = frozenset(given), frozenset(kept)
    running = [step for step in steps if step.node not in outside]
    readers = Counter(source for step in running for source in step.inputs)
    slots: dict[NodeId, int] = {}
    free: list[int] = []
    size = 0

    def allot() -> int:
        nonlocal size
        if free:
            return free.pop()
        size += 1
        return size - 1

    entries = [(node, allot()) for node in given]
    slots.update(entries)
    roots = [step.node for step in running if not step.inputs]
    root_slots = {node: allot() for node in roots}
    entries += root_slots.items()

    instructions = []
    for step in running:
        released = []
        for source in step.inputs:
            readers[source] -= 1
            if not readers[source] and source not in answered:
                released.append(slots[source])
        if not step.inputs:
            released.append(root_slots[step.node])
        free += released
        target = slots[step.node] = allot()
        call = calls[step.node]
        fan_in = len(step.inputs) > 1
        first = slots[step.inputs[0]] if step.inputs else root_slots[step.node]
        instructions.append(
            Instruction(
                function=call.function,
                source=first,
                target=target,
                fan_in=tuple((one, slots[one]) for one in step.inputs) if fan_in else None,
                done=tuple(slot for slot in released if slot != target),
                has_extra=call.has_extra,
                node=step.node,
                key=call.key,
            )
        )
    return Program(
        tuple(instructions),
        turns_of(instructions),
        size,
        tuple(roots),
        tuple(entries),
        tuple((node, slots[node]) for node in kept),
    )


def turns_of(instructions: Sequence[Instruction]) -> tuple[Turn, ...]:
    """Return the instructions as the bare loop wants them."""
    return tuple(
        (
            one.function,
            one.source,
            one.target,
            one.node,
            one if one.fan_in is not None or one.has_extra else None,
        )
        for one in instructions
    )

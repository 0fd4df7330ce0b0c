"""The two loops that run a program, and the note that an error takes along.

`run` does nothing but call. `run_observed` also tells listeners; with an executor,
`_parallel.py` takes its place.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import cast

from soma.core import Listeners, NodeFailed, NodeFinished, NodeId, NodeStarted, Phase
from soma.engine._describe import describe
from soma.engine._held import Held, seen, values_of
from soma.engine._program import Instruction, Program, turns_of

Extras = dict[NodeId, object]
Pair = tuple[object, object]
Names = Callable[[NodeId], str]


def run(
    program: Program, inputs: Mapping[NodeId, object], extras: Extras, phase: Phase, names: Names
) -> object:
    """Run every instruction and return the program's answer; extras are put into `extras`."""
    slots: list[object] = [None] * program.size
    for root, slot in program.entries:
        slots[slot] = inputs[root]
    return run_slots(program, slots, extras, phase, names)


def run_slots(
    program: Program, slots: list[object], extras: Extras, phase: Phase, names: Names
) -> object:
    """Run with slots that hold the inputs already; `[x] * program.size` gives every root `x`."""
    try:
        for function, source, target, node, rest in program.turns:  # for the note
            if rest is None:
                slots[target] = function(slots[source])
            elif rest.fan_in is None:
                slots[target], extra = cast(Pair, function(slots[source]))
                if extra:
                    extras[node] = extra
            else:
                _fan_in(rest, rest.fan_in, slots, extras)
    except Exception as error:  # Ctrl-C is not about the node
        if rest is None or rest.fan_in is None:
            given = slots[source]
        else:
            given = {name: slots[slot] for name, slot in rest.fan_in}
        add_note(error, names(node), phase, given)
        raise
    return program.collect(slots)


def _fan_in(
    instruction: Instruction,
    reads: tuple[tuple[NodeId, int], ...],
    slots: list[object],
    extras: Extras,
) -> None:
    """Take the turn of a node that reads several values."""
    answer = instruction.function({name: slots[slot] for name, slot in reads})
    if instruction.has_extra:
        answer, extra = cast(Pair, answer)
        if extra:
            extras[instruction.node] = extra
    for slot in instruction.done:
        slots[slot] = None
    slots[instruction.target] = answer


def run_observed(
    program: Program,
    inputs: Mapping[NodeId, object],
    extras: Extras,
    phase: Phase,
    names: Names,
    listeners: Listeners,
) -> object:
    """Run as `run` does, and tell listeners what happens."""
    watched = tuple(
        one._replace(function=_Told(one, phase, listeners)) for one in program.instructions
    )
    observed = program._replace(instructions=watched, turns=turns_of(watched))
    return run(observed, inputs, extras, phase, names)


def watched(program: Program, listeners: Listeners) -> Program:
    """Return `program` with each turn taken by the watchers that want this run."""
    for watcher in tuple(listeners.watchers):
        if watcher.wanted():
            inside = tuple(
                one._replace(
                    function=partial(watcher.turn, one.node, one.function, has_extra=one.has_extra)
                )
                for one in program.instructions
            )
            program = program._replace(instructions=inside, turns=turns_of(inside))
    return program


class _Told:
    """A node's function that says when it starts, ends or fails, and shows its output."""

    __slots__ = ("instruction", "listeners", "phase")

    def __init__(self, instruction: Instruction, phase: Phase, listeners: Listeners) -> None:
        self.instruction = instruction
        self.phase = phase
        self.listeners = listeners

    def __call__(self, x: object) -> object:
        node, phase, say = self.instruction.node, self.phase, self.listeners.say
        say(NodeStarted(node=node, phase=phase))
        began = perf_counter()
        try:
            answer = self.instruction.function(x)
        except BaseException as error:
            say(NodeFailed(node=node, phase=phase, error=type(error).__name__))
            raise
        output = answer[0] if self.instruction.has_extra else answer  # type: ignore[index]
        say(finished(node, phase, perf_counter() - began, output))
        if self.listeners.taps:
            self.listeners.show(node, values_of(output))
        return answer


def finished(node: NodeId, phase: Phase, seconds: float, output: object) -> NodeFinished:
    """Return the event of a node that has answered, by running or from the cache."""
    cached = isinstance(output, Held) and output.cached
    return NodeFinished(node=node, phase=phase, seconds=seconds, cached=cached)


def add_note(error: Exception, name: str, phase: Phase, given: object) -> None:
    """Add a note to `error`: which node raised it, in which phase, and its input."""
    with suppress(Exception):  # an error that takes no notes is raised all the same
        error.add_note(f"in node {name}, during {phase}; its input: {describe(seen(given))}")
        if isinstance(error, ValueError) and "read-only" in str(error):
            error.add_note("Inputs are read-only: others read them too. Change a copy.")


def has_note(error: BaseException, name: str) -> bool:
    """Whether an error has the note on a node already, from the process that raised it."""
    return any(one.startswith(f"in node {name},") for one in getattr(error, "__notes__", ()))

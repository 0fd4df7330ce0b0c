"""Runs independent nodes of a program side by side on a `concurrent.futures.Executor`.

`_handed.py` is how one of them gets there.
"""

import os
from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from graphlib import TopologicalSorter
from queue import SimpleQueue
from time import perf_counter
from typing import NamedTuple, cast

from soma.core import Listeners, NodeFailed, NodeId, NodeStarted, Phase
from soma.engine._ambient import settings
from soma.engine._cached import CachedCall
from soma.engine._handed import Task, answer_of, handed, shares_memory
from soma.engine._held import values_of
from soma.engine._program import Instruction, Program
from soma.engine._run import Extras, Names, add_note, finished, has_note
from soma.engine._turn import Turn


class Layout(NamedTuple):
    """What a run on an executor has to know of a graph.

    Attributes:
        sources: which nodes each node reads; a program's slots are reused and cannot tell.
        staying: the nodes that take their turn in this process, whatever the executor is.
        unseeded: the nodes that draw, where no seed is given.
    """

    sources: Mapping[NodeId, tuple[NodeId, ...]]
    staying: Collection[NodeId]
    unseeded: Collection[NodeId]


class _Running(NamedTuple):
    """A node at work."""

    instruction: Instruction
    task: Task
    executor: Executor
    began: float
    turn: Turn | None = None  # where this thread asks the cache for it
    key: str | None = None  # of what it computes, which others may wait for


def run_parallel(
    program: Program,
    inputs: Mapping[NodeId, object],
    extras: Extras,
    phase: Phase,
    names: Names,
    listeners: Listeners,
    executor: Executor,
    layout: Layout,
) -> object:
    """Run as `run` does, each node as soon as all that it reads is there.

    The first error cancels what has not started and is raised once the rest has ended. Only
    the calling thread touches values and listeners; workers see one function and one input.
    """
    sources = layout.sources
    instructions = {instruction.node: instruction for instruction in program.instructions}
    values: dict[NodeId, object] = {
        node: inputs[node] for node, _ in program.entries if node not in instructions
    }
    readers = Counter(one for node in instructions for one in sources[node])
    readers.update(node for node, _ in program.exits)
    sorter = TopologicalSorter(
        {node: [one for one in sources[node] if one in instructions] for node in instructions}
    )
    sorter.prepare()
    running: dict[Future[object], _Running] = {}
    waiting: dict[str, list[Future[object]]] = {}  # for what another node computes, by its key
    ended: SimpleQueue[Future[object]] = SimpleQueue()
    present, home = settings(), os.getpid()
    own = None
    if layout.staying and not shares_memory(executor):
        own = ThreadPoolExecutor(thread_name_prefix="soma")

    def begin(node: NodeId) -> None:
        read = sources[node]
        if not read:
            given = inputs[node]
        elif len(read) == 1:
            given = values[read[0]]
        else:
            given = {one: values[one] for one in read}
        instruction = instructions[node]
        listeners.say(NodeStarted(node=node, phase=phase))
        chosen = own if own is not None and node in layout.staying else executor
        function, began = instruction.function, perf_counter()
        task = Task(function, given, present, names(node), phase, home, node in layout.unseeded)
        turn = key = None
        if isinstance(function, CachedCall) and not shares_memory(chosen):
            # The cache stays in this process; another one gets plain values and gives one back.
            turn = function.prepare(given)
            key = turn.key or turn.state_key
            if turn.found is not None:
                future, turn = _done(function.finish(turn)), None
            elif key in waiting:
                future, turn = Future(), None
                waiting[key].append(future)
            else:
                sent = replace(task, function=function.missing(turn), given=values_of(given))
                future = handed(chosen, sent)
                if key is not None:
                    waiting[key] = []
        else:
            future = handed(chosen, task)
        running[future] = _Running(instruction, task, chosen, began, turn, key)
        future.add_done_callback(ended.put)

    def end(future: Future[object]) -> None:
        one = running.pop(future)
        instruction = one.instruction
        node = instruction.node
        try:
            answer = answer_of(future, one.task, one.executor)
            if one.turn is not None:
                answer = cast(CachedCall, instruction.function).finish(one.turn, answer)
                for other in waiting.pop(one.key, ()) if one.key is not None else ():
                    other.set_result(answer)
        except BaseException as error:
            listeners.say(NodeFailed(node=node, phase=phase, error=type(error).__name__))
            if isinstance(error, Exception) and not has_note(error, one.task.name):
                add_note(error, one.task.name, phase, one.task.given)
            raise
        finally:
            del future  # it holds the error, whose traceback holds this frame
        if instruction.has_extra:
            answer, extra = cast(tuple[object, object], answer)
            if extra:
                extras[node] = extra
        values[node] = answer
        listeners.say(finished(node, phase, perf_counter() - one.began, answer))
        if listeners.taps:
            listeners.show(node, values_of(answer))
        for source in sources[node]:
            readers[source] -= 1
            if not readers[source]:
                del values[source]
        sorter.done(node)

    try:
        while sorter.is_active():
            for node in sorter.get_ready():
                begin(node)
            end(ended.get())
    finally:
        wait([future for future in running if not future.cancel()])
        if own is not None:
            own.shutdown()
    leaves = [node for node, _ in program.exits]
    return values[leaves[0]] if len(leaves) == 1 else {leaf: values[leaf] for leaf in leaves}


def _done(answer: object) -> Future[object]:
    future: Future[object] = Future()
    future.set_result(answer)
    return future

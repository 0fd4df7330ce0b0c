"""Runs independent nodes of a program side by side on a `concurrent.futures.Executor`."""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from graphlib import TopologicalSorter
from queue import SimpleQueue
from time import perf_counter
from typing import cast

from soma.core import Listeners, NodeFailed, NodeId, NodeStarted, Phase
from soma.engine._cached import CachedCall
from soma.engine._held import values_of
from soma.engine._program import Instruction, Program
from soma.engine._run import Extras, Names, add_note, finished
from soma.engine._turn import Turn
from soma.engine._values import without_gradients


def run_parallel(
    program: Program,
    inputs: Mapping[NodeId, object],
    extras: Extras,
    phase: Phase,
    names: Names,
    listeners: Listeners,
    executor: Executor,
    sources: Mapping[NodeId, tuple[NodeId, ...]],
) -> object:
    """Run as `run` does, each node as soon as all that it reads is there.

    The first error cancels what has not started and is raised once the rest has ended. Only
    the calling thread touches values and listeners; workers see one function and one input.

    Args:
        sources: which nodes each node reads; a program's slots are reused and cannot tell.
    """
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
    running: dict[Future[object], tuple[Instruction, object, float]] = {}
    turns: dict[Future[object], tuple[CachedCall, Turn]] = {}
    ended: SimpleQueue[Future[object]] = SimpleQueue()

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
        function = instruction.function
        if isinstance(function, CachedCall) and not isinstance(executor, ThreadPoolExecutor):
            # The cache stays in this process; another one gets plain values and gives one back.
            turn = function.prepare(given)
            if turn.found is not None:
                future = _done(function.finish(turn))
            else:
                future = _submitted(executor, function.missing(turn), values_of(given))
                turns[future] = (function, turn)
        else:
            future = _submitted(executor, function, given)
        running[future] = (instruction, given, perf_counter())
        future.add_done_callback(ended.put)

    def end(future: Future[object]) -> None:
        instruction, given, began = running.pop(future)
        node = instruction.node
        try:
            answer = future.result()
            if future in turns:
                cached, turn = turns.pop(future)
                answer = cached.finish(turn, answer)
        except BaseException as error:
            listeners.say(NodeFailed(node=node, phase=phase, error=type(error).__name__))
            if isinstance(error, Exception):
                add_note(error, names(node), phase, given)
            raise
        finally:
            del future  # it holds the error, whose traceback holds this frame
        if instruction.has_extra:
            answer, extra = cast(tuple[object, object], answer)
            if extra:
                extras[node] = extra
        values[node] = answer
        listeners.say(finished(node, phase, perf_counter() - began, answer))
        if listeners.taps:
            listeners.show(node, values_of(answer))
        for one in sources[node]:
            readers[one] -= 1
            if not readers[one]:
                del values[one]
        sorter.done(node)

    try:
        while sorter.is_active():
            for node in sorter.get_ready():
                begin(node)
            end(ended.get())
    finally:
        wait([future for future in running if not future.cancel()])
    leaves = [node for node, _ in program.exits]
    return values[leaves[0]] if len(leaves) == 1 else {leaf: values[leaf] for leaf in leaves}


def _done(answer: object) -> Future[object]:
    future: Future[object] = Future()
    future.set_result(answer)
    return future


def _submitted(
    executor: Executor, function: Callable[[object], object], given: object
) -> Future[object]:
    if isinstance(executor, ThreadPoolExecutor):
        # Settings such as `numpy.errstate` hold in the node as they do for the caller.
        return executor.submit(copy_context().run, _work, function, given)
    return executor.submit(_work, function, given)  # a context cannot leave the process


def _work(function: Callable[[object], object], given: object) -> object:
    # Whether gradients are recorded is a matter of each thread, so it is said again here.
    with without_gradients():
        return function(given)

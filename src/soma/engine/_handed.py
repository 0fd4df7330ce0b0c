"""Hands one node's turn to an executor, whose threads, processes or machines take it.

`_parallel.py` decides which turn is next. What goes to another process is pickled by the
executor's own means, and so is what comes back.
"""

import os
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context
from copy import copy, deepcopy
from dataclasses import dataclass
from secrets import randbits, token_hex

from soma._extras import loaded
from soma.core import Phase
from soma.engine._ambient import Settings, under
from soma.engine._run import add_note, has_note
from soma.engine._seeding import seeded
from soma.engine._values import without_gradients
from soma.errors import NotSent, RemoteFailure

_UNSENT = ("pickl", "serializ")  # what libraries say of something that cannot cross


@dataclass(frozen=True, slots=True)
class Task:
    """One node's turn, with all that it needs in another process."""

    function: Callable[[object], object]
    given: object
    settings: Settings | None
    name: str  # of the node, for messages
    phase: Phase
    home: int  # the process that asks
    is_unseeded: bool  # it draws, and no seed is given


def shares_memory(executor: Executor) -> bool:
    """Whether an executor runs its calls in this process for sure."""
    return isinstance(executor, ThreadPoolExecutor)


def handed(executor: Executor, task: Task) -> Future[object]:
    """Start a turn; where the executor does not take it, the future holds its error."""
    try:
        if shares_memory(executor):
            # Settings such as `numpy.errstate` hold in the node as they do for the caller.
            return executor.submit(copy_context().run, _take, task)
        # Dask answers equal calls with one result, unless it is told otherwise. The number makes
        # each call another one, so that two nodes of one kind draw their own numbers.
        return executor.submit(_take_away, _apart(task, executor), token_hex(8))
    except Exception as error:
        future: Future[object] = Future()
        future.set_exception(error)
        return future


def answer_of(future: Future[object], task: Task, executor: Executor) -> object:
    """Return what a turn has given.

    Raises:
        NotSent: the executor could not pickle the task or its answer.
    """
    try:
        return future.result()
    except Exception as error:
        if shares_memory(executor) or has_note(error, task.name):
            raise
        kind, text = type(executor).__name__, f"{type(error).__name__}: {error}"
        if not any(part in text.lower() for part in _UNSENT):
            error.add_note(f"This is an error of the executor, a {kind}, and not of the node.")
            raise
        raise NotSent(
            f"{task.name} or its answer cannot be sent between processes by {kind}: {text}. A "
            "filter, what it has learned, its input and its output are pickled as that executor "
            "does it: they hold no lock, open file or connection, and where it takes no lambda "
            "their functions and classes stand at the top of a module."
        ) from error
    finally:
        del future  # it holds the error, whose traceback holds this frame


def _apart(task: Task, executor: Executor) -> Task:
    """Return the task with tensors of its own where the executor would move those of others.

    What torch has multiprocessing pickle goes into shared memory, in place: whoever reads the
    tensor meanwhile, as another node or a digest does, reads memory that is free.
    """
    moves = isinstance(executor, ProcessPoolExecutor) and loaded("torch") is not None
    return deepcopy(task) if moves else task


def _take(task: Task) -> object:
    # Whether gradients are recorded is a matter of each thread, so it is said again here.
    with without_gradients(), under(task.settings):
        return task.function(task.given)


def _take_away(task: Task, number: str) -> object:
    try:
        if task.is_unseeded and os.getpid() != task.home:
            # Forked processes have the same generators, which would draw the same numbers.
            with seeded(randbits(32)):
                return _take(task)
        return _take(task)
    except Exception as error:
        if os.getpid() == task.home or _can_be_rebuilt(error):
            add_note(error, task.name, task.phase, task.given)
            raise
        text = f"{type(error).__name__} in another process: {error}"
        failure = RemoteFailure(f"{text}\n\nThere:\n{traceback.format_exc()}")
    # Raised out here, where the error is not its context: some picklers send that along.
    add_note(failure, task.name, task.phase, task.given)
    raise failure


def _can_be_rebuilt(error: Exception) -> bool:
    """Whether an error can be made again of what it tells of itself, as a pickler does."""
    try:
        copy(error)
    except Exception:
        return False
    return True

"""`Executors`: the executor of one graph, and what a thread uses in its place for a while."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from threading import get_ident

from soma.errors import InvalidInput


class Executors:
    """Says on which executor this thread runs a graph.

    Args:
        asked: of the graph, as its user has given it.
    """

    __slots__ = ("asked", "by_thread")

    def __init__(self, asked: Executor | str | None) -> None:
        self.asked = asked
        own = checked_executor(asked)
        # Empty while nodes run in order everywhere, which is all that a bare forward looks at.
        self.by_thread: dict[int | None, Executor | None] = {} if own is None else {None: own}

    def __deepcopy__(self, memo: object) -> "Executors":
        return Executors(self.asked)  # a pool cannot be copied, and one that is given is shared

    def __reduce__(self) -> tuple[type["Executors"], tuple[Executor | str | None]]:
        return Executors, (self.asked,)

    def present(self) -> Executor | None:
        """Return the executor of this thread; None: nodes run in order."""
        return self.by_thread.get(get_ident(), self.by_thread.get(None))

    @contextmanager
    def using(self, executor: Executor | str | None) -> Iterator[None]:
        """Run on another executor inside, in this thread; None keeps the present one."""
        if executor is None:
            yield
            return
        chosen = checked_executor(executor)
        try:
            with self._instead(chosen):
                yield
        finally:
            if isinstance(executor, str) and chosen is not None:
                chosen.shutdown()

    def in_order(self) -> AbstractContextManager[None]:
        """Run nodes one after the other inside, whatever executor there is."""
        return self._instead(None)

    @contextmanager
    def _instead(self, executor: Executor | None) -> Iterator[None]:
        thread = get_ident()
        had, before = thread in self.by_thread, self.by_thread.get(thread)
        self.by_thread[thread] = executor
        try:
            yield
        finally:
            if had:
                self.by_thread[thread] = before
            else:
                del self.by_thread[thread]


def checked_executor(executor: object) -> Executor | None:
    """Return an executor: `"threads"` makes one, None is sequential.

    Raises:
        InvalidInput: it is something else.
    """
    if executor is None or isinstance(executor, Executor):
        return executor
    if executor == "threads":
        return ThreadPoolExecutor(thread_name_prefix="soma")
    raise InvalidInput(
        f'`executor` is {executor!r}; it may be None, "threads" or a concurrent.futures.Executor.'
    )

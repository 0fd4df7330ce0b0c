"""Threads for what runs side by side, which hold up neither Ctrl-C nor the end of the program."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from queue import SimpleQueue
from threading import Event, Thread
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

_GRACE = 2.0  # seconds in which what is going on may come to its end, after Ctrl-C or an error

_Work = tuple["Future[object]", Context, Callable[[], object]]


class Pool:
    """Runs functions in threads of its own inside a `with`, `most` of them at a time.

    An error inside, as Ctrl-C, cancels what has not begun, and waits for the rest no longer than
    two seconds: a thread cannot be ended, and the threads of the standard pool would be waited for
    at the end of the program.

    Args:
        stop: is set then, before the wait.
    """

    def __init__(self, most: int, stop: Event) -> None:
        self._most = most
        self._stop = stop
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads = 0
        self._futures: list[Future[object]] = []

    def submit(self, function: Callable[[], T]) -> "Future[T]":
        """Have a function run; its result or error is in what this returns."""
        future: Future[object] = Future()
        self._futures.append(future)
        self._work.put((future, copy_context(), function))
        if self._threads < self._most:
            self._threads += 1
            Thread(target=self._run, name="soma-flow", daemon=True).start()
        return future  # type: ignore[return-value]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._stop.set()
            for future in self._futures:
                future.cancel()
        for _ in range(self._threads):
            self._work.put(None)
        if error is not None:
            wait(self._futures, timeout=_GRACE)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            future, context, function = work
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(context.run(function))
                except BaseException as error:  # whoever waits gets it
                    future.set_exception(error)

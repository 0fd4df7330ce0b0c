"""Runs one coroutine in a thread of its own, so that whoever asks can always leave in time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
_GOODBYE = 1.0  # seconds; a name look-up cannot be cancelled, and is not waited for


def apart(
    work: Callable[[Callable[[str], None]], Coroutine[Any, Any, T]],
    on_piece: Callable[[str], None] | None,
) -> T:
    """Return what a coroutine returns; it is cancelled when this thread is interrupted.

    A notebook has a running loop in this thread already, so there is one in another.

    Args:
        work: makes the coroutine from a function that takes pieces of text.
        on_piece: gets each of them, in this thread.
    """
    pieces: SimpleQueue[str | None] = SimpleQueue()
    with _loop_apart() as loop:
        future = asyncio.run_coroutine_threadsafe(work(pieces.put), loop)
        future.add_done_callback(lambda done: pieces.put(None))
        try:
            for piece in iter(pieces.get, None):
                if on_piece and piece:
                    on_piece(piece)
            return future.result()
        finally:
            future.cancel()


@contextmanager
def _loop_apart() -> Iterator[asyncio.AbstractEventLoop]:
    ready: SimpleQueue[asyncio.AbstractEventLoop] = SimpleQueue()

    def serve() -> None:
        with asyncio.Runner() as runner:  # whose end cancels what is left, and closes connections
            ready.put(runner.get_loop())
            runner.get_loop().run_forever()

    thread = Thread(target=serve, name="soma-model", daemon=True)
    thread.start()
    loop = ready.get()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_GOODBYE)

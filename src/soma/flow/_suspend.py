"""How a tool asks a person: `ask`, and `Suspend`, which stops a run until there is an answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from soma.errors import InvalidInput

_asking: ContextVar[Callable[[str], object] | None] = ContextVar("soma_asking", default=None)


class Suspend(BaseException):  # no `Exception`: a tool that catches those must not swallow it
    """Raised by a tool, stops the run until a person answers; the answer is what the tool gives.

    A tool that goes on with the answer itself calls `ask`.

    Args:
        question: for the person.
        at: where in the run it was asked; the flow says so.
    """

    def __init__(self, question: str, *, at: str = "") -> None:
        super().__init__(question)
        self.question = question
        self.at = at


def ask(question: str) -> Any:
    """Return a person's answer, in a tool that a flow calls.

    Where there is none yet the run stops, and `flow.resume(..., answer=...)` calls the tool again
    from its beginning, with the answers that came so far. So ask before anything is done.

    Raises:
        InvalidInput: no flow calls.
    """
    asking = _asking.get()
    if asking is None:
        raise InvalidInput(
            f"`ask({question!r:.200})` was called outside of a flow; it works in a tool that a "
            "flow calls, on the thread of the call."
        )
    return asking(question)


@contextmanager
def asking(answer: Callable[[str], object]) -> Iterator[None]:
    """Let `ask` get its answers from a function inside."""
    token = _asking.set(answer)
    try:
        yield
    finally:
        _asking.reset(token)

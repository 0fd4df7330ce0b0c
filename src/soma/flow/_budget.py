"""`Budget`: how much a flow may use; `Spending` counts it while a flow runs."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from soma.core import Message, Reply, Usage
from soma.errors import BudgetSpent, InvalidInput

_BYTES_OF_TOKEN = 4  # of English, about; of what a model has heard before nothing is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a flow may use, in all its resumptions together; None sets no limit.

    >>> Budget(turns=20, tokens=50_000, seconds=600)
    Budget(turns=20, tokens=50000, seconds=600)

    Args:
        turns: calls of models.
        tokens: of all that models read and wrote. The reply that exceeds it is kept, and is the
            last. Of a model that tells none, a token is counted for each four bytes.
        seconds: of work, without the time in which nobody ran the flow.

    Raises:
        InvalidInput: one of them is no positive number.
    """

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "tokens", "seconds"):
            value = getattr(self, name)
            kinds = (int, float) if name == "seconds" else (int,)
            if value is not None and (type(value) not in kinds or not value > 0):
                raise InvalidInput(
                    f"the budget's `{name}` is {value!r}; a number above 0 is wanted, or None for "
                    "no limit."
                )


def as_budget(value: object) -> Budget | None:
    """Return a budget, or None for no limit.

    Raises:
        InvalidInput: it is something else.
    """
    if value is None or isinstance(value, Budget):
        return value
    raise InvalidInput(
        f"{value!r:.80} came for a budget; `Budget(turns=..., tokens=..., seconds=...)` is wanted."
    )


class Spending:
    """What a flow has used, counted for the flows above it too.

    Args:
        name: of the flow, for messages.
        clock: gives the seconds of the run.
        above: of the flow that this one is a part of.
    """

    def __init__(
        self,
        budget: Budget | None,
        name: str,
        clock: Callable[[], float],
        above: "Spending | None" = None,
    ) -> None:
        self.budget = budget or Budget()
        self.turns = 0
        self.usage = Usage()  # as models tell it
        self._tokens = 0
        self._name = name
        self._clock = clock
        self._above = above
        # The outermost flow counts from the beginning of the run, in whichever process that was.
        self._began = 0.0 if above is None else clock()
        self._recalled = 0.0  # seconds of recorded effects, which take no time now
        self._lock = threading.Lock()

    def begin_turn(self) -> None:
        """Count a call of a model, if there may be one more.

        Raises:
            BudgetSpent: there may not.
        """
        with self._lock:
            if self.budget.turns is not None and self.turns >= self.budget.turns:
                raise self._spent("turns", f"{self.budget.turns:,}", f"{self.turns:,}")
            self.turns += 1
        if self._above is not None:
            self._above.begin_turn()

    def add(self, said: Sequence[Message], reply: Reply) -> None:
        """Count the tokens of a reply, and of what was said before it where it tells none.

        Raises:
            BudgetSpent: they were too many.
        """
        with self._lock:
            self.usage += reply.usage
            self._tokens += _tokens(said, reply)
        if self.budget.tokens is not None and self._tokens > self.budget.tokens:
            raise self._spent("tokens", f"{self.budget.tokens:,}", f"{self._tokens:,}")
        if self._above is not None:
            self._above.add(said, reply)

    def recall(self, seconds: float) -> None:
        """Count the time of a recorded effect."""
        with self._lock:
            self._recalled += seconds
        if self._above is not None:
            self._above.recall(seconds)

    def seconds_left(self) -> float | None:
        """Return the time that is left; None if there is no limit.

        Raises:
            BudgetSpent: there is none left.
        """
        above = None if self._above is None else self._above.seconds_left()
        if self.budget.seconds is None:
            return above
        left = self.budget.seconds - self._used()
        if left <= 0:
            used = f"{self._used():.1f}"
            raise self._spent("seconds", f"{self.budget.seconds:g}", used)
        return left if above is None else min(left, above)

    def _used(self) -> float:
        recalled = 0.0 if self._above is None else self._recalled
        return self._clock() - self._began + recalled

    def _spent(self, what: str, most: str, used: str) -> BudgetSpent:
        larger = f"`flow.resume(..., budget=Budget({what}=...))`"
        how = (
            f"To go on where it stands, give more with {larger}."
            if self._above is None
            else f"To go on where it stands, give the flow `{self._name}` a larger `budget`, and "
            "call `flow.resume(...)`."
        )
        return BudgetSpent(
            f"the flow `{self._name}` has used {used} of its {most} {what}, and wants more. {how}"
        )


def _tokens(said: Sequence[Message], reply: Reply) -> int:
    if reply.usage.tokens > 0:
        return reply.usage.tokens
    texts = [*(one.text for one in said), reply.text, *(call.arguments for call in reply.calls)]
    return ceil(sum(len(text.encode("utf-8", "replace")) for text in texts) / _BYTES_OF_TOKEN)

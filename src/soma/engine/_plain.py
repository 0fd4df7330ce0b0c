"""How plain filters answer: with what they have learned, or learning first."""

from collections.abc import Callable
from typing import cast
from warnings import warn

from soma.core import Filter, is_read_once
from soma.engine._seeding import Seeded, derived_seed
from soma.engine._values import Protected
from soma.errors import InvalidInput, InvalidOutput, SomaWarning, listing

Function = Callable[[object], object]


class PlainCall:
    """A plain filter's answer, with what it has learned."""

    __slots__ = ("filter", "state")

    def __init__(self, filter: Filter, state: object) -> None:
        self.filter = filter
        self.state = state

    def __call__(self, x: object) -> object:
        return self.filter.forward(x, self.state)


class FitCall:
    """Learns, then answers: gives `(output, (state,))`.

    The two are seeded one by one, so that an answer is the same whether the state was learned
    just now or known before.
    """

    __slots__ = ("drawing", "filter", "protects", "readers", "y")

    def __init__(
        self,
        filter: Filter,
        y: object,
        *,
        drawing: tuple[int, int] | None = None,
        protects: bool = False,
        readers: int = 0,
    ) -> None:
        self.filter = filter
        self.y = y
        self.drawing = drawing  # the run's seed, and the filter's number among those that draw
        self.protects = protects
        self.readers = readers  # nodes that read the answer

    def __call__(self, x: object) -> tuple[object, tuple[object]]:
        state = self.learn(x)
        return self.answer(x, state), (state,)

    def guarded(
        self, drawing: tuple[int, int] | None, *, protects: bool, readers: int
    ) -> "FitCall":
        """Return the same call, seeded where it draws, with its input protected."""
        return FitCall(self.filter, self.y, drawing=drawing, protects=protects, readers=readers)

    def learn(self, x: object) -> object:
        """Return what the filter learns from `x` and the targets, which stay as they are.

        Raises:
            InvalidInput: `x` can be read once, and the answer for it is wanted too.
        """
        if self.readers and is_read_once(x):
            raise InvalidInput(
                f"a {type(x).__name__} came, which can be read once: `fit` would leave nothing of "
                "it to `forward`, whose answer other nodes read. Give a list or an array."
            )
        function: Function = _Learning(self.filter)
        if self.drawing is not None:
            function = Seeded(function, _seed(self.filter, self.drawing, ".fit"))
        return Protected(function)((x, self.y))

    def answer(self, x: object, state: object) -> object:
        """Return the output for `x`."""
        call = PlainCall(self.filter, state)
        return guarded(
            call, self.filter, self.drawing, protects=self.protects, readers=self.readers
        )(x)


class _ReadOften:
    """A function whose answer several nodes read, so that it must not be gone after the first."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function

    def __call__(self, x: object) -> object:
        answer = self.function(x)
        if is_read_once(answer):
            raise InvalidOutput(
                f"`forward` gave a {type(answer).__name__}, which can be read once, and several "
                "nodes read it: all but the first would find nothing. Return a list or an array."
            )
        return answer


class _Learning:
    """Calls `fit` with a pair, and looks at what it returns."""

    __slots__ = ("filter",)

    def __init__(self, filter: Filter) -> None:
        self.filter = filter

    def __call__(self, pair: object) -> object:
        x, y = cast(tuple[object, object], pair)
        before = dict(vars(self.filter))
        state = self.filter.fit(x, y)
        if state is None or state is self.filter:
            _check_not_kept(self.filter, before, state)
        return state


def guarded(
    function: Function,
    filter: Filter,
    drawing: tuple[int, int] | None,
    *,
    protects: bool,
    readers: int,
) -> Function:
    """Seed a function that draws, and protect what others read too: its input, its answer."""
    if drawing is not None:
        function = Seeded(function, _seed(filter, drawing, ""))
    if readers > 1:
        function = _ReadOften(function)
    return Protected(function) if protects else function


def _seed(filter: Filter, drawing: tuple[int, int], suffix: str) -> int:
    seed, number = drawing
    return derived_seed(seed, type(filter).__qualname__ + suffix, number)


def _check_not_kept(filter: Filter, before: dict[str, object], state: object) -> None:
    """Warn of a `fit` that stores what it learned on the filter and does not return it."""
    after = vars(filter)
    changed = [name for name in after if after[name] is not before.get(name, filter)]
    if changed:
        told = "itself" if state is filter else "None"
        warn(
            f"`{type(filter).__name__}.fit` stored {listing(changed)} on the filter and returned "
            f"{told}. Return what was learned: it comes back as the second argument of `forward`, "
            "and only so can it be kept, copied and told apart from another fit.",
            SomaWarning,
            stacklevel=2,
        )

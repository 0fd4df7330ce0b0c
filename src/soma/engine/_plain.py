"""How plain filters answer: with what they have learned, or learning first."""

from collections.abc import Callable
from typing import cast
from warnings import warn

from soma.core import Filter
from soma.engine._seeding import Seeded, derived_seed
from soma.engine._values import Protected
from soma.errors import SomaWarning, listing

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

    __slots__ = ("drawing", "filter", "protects", "y")

    def __init__(
        self,
        filter: Filter,
        y: object,
        *,
        drawing: tuple[int, int] | None = None,
        protects: bool = False,
    ) -> None:
        self.filter = filter
        self.y = y
        self.drawing = drawing  # the run's seed, and the filter's number among those that draw
        self.protects = protects

    def __call__(self, x: object) -> tuple[object, tuple[object]]:
        state = self.learn(x)
        return self.answer(x, state), (state,)

    def guarded(self, drawing: tuple[int, int] | None, *, protects: bool) -> "FitCall":
        """Return the same call, seeded where it draws, with its input protected."""
        return FitCall(self.filter, self.y, drawing=drawing, protects=protects)

    def learn(self, x: object) -> object:
        """Return what the filter learns from `x` and the targets, which stay as they are."""
        function: Function = _Learning(self.filter)
        if self.drawing is not None:
            function = Seeded(function, _seed(self.filter, self.drawing, ".fit"))
        return Protected(function)((x, self.y))

    def answer(self, x: object, state: object) -> object:
        """Return the output for `x`."""
        call = PlainCall(self.filter, state)
        return guarded(call, self.filter, self.drawing, protects=self.protects)(x)


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
    function: Function, filter: Filter, drawing: tuple[int, int] | None, *, protects: bool
) -> Function:
    """Seed a function that draws, and protect an input that others read too."""
    if drawing is not None:
        function = Seeded(function, _seed(filter, drawing, ""))
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

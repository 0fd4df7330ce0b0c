"""Times things side by side in one process, so that a noisy machine is noisy to all alike."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Run = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """How long one candidate takes over another, from paired rounds."""

    median: float
    lower: float  # of the bootstrapped 95 % interval of the median
    upper: float
    of_minima: float
    seconds: float  # median of the first candidate, for one run
    base_seconds: float


def ratio(candidate: Run, base: Run, *, rounds: int = 21, round_seconds: float = 0.05) -> Ratio:
    """Time `candidate` against `base`, in shuffled order within each round."""
    (found,) = ratios([candidate], base, rounds=rounds, round_seconds=round_seconds)
    return found


def ratios(
    candidates: Sequence[Run],
    base: Run,
    *,
    rounds: int = 21,
    round_seconds: float = 0.05,
    before: Run | None = None,
) -> list[Ratio]:
    """Time each candidate against `base`, all of them in shuffled order within each round.

    Args:
        before: called before each of them, and not timed.
    """
    before = before or _nothing
    runs = [*candidates, base]
    inner = [_runs_in(one, round_seconds) for one in runs]
    order = random.Random(0)
    times: list[list[float]] = [[] for _ in runs]
    for number in range(-1, rounds):  # the first round only warms up
        turns = list(range(len(runs)))
        order.shuffle(turns)
        for which in turns:
            before()
            seconds = _time(runs[which], inner[which])
            if number >= 0:
                times[which].append(seconds)
    before()
    return [_compared(mine, times[-1]) for mine in times[:-1]]


def _compared(mine: list[float], hers: list[float]) -> Ratio:
    pairs = [one / other for one, other in zip(mine, hers, strict=True)]
    return Ratio(
        statistics.median(pairs),
        *_interval(pairs),
        min(mine) / min(hers),
        statistics.median(mine),
        statistics.median(hers),
    )


def _nothing() -> None:
    return None


def verdict(result: Ratio, target: float) -> str:
    """Return one line: ratio, interval, ratio of minima, and whether the target is met."""
    met = "met" if result.lower <= target else "MISSED"
    return (
        f"{result.median:6.3f}  [{result.lower:.3f}, {result.upper:.3f}]  "
        f"minima {result.of_minima:6.3f}  target {target:5.2f}  {met}   "
        f"({result.seconds * 1e6:,.1f} us over {result.base_seconds * 1e6:,.1f} us)"
    )


def _runs_in(run: Run, seconds: float) -> int:
    _time(run, 3)
    return max(1, int(seconds / max(_time(run, 3), 1e-9)))


def _time(run: Run, inner: int) -> float:
    began = time.perf_counter()
    for _ in range(inner):
        run()
    return (time.perf_counter() - began) / inner


def _interval(values: list[float], draws: int = 2000) -> tuple[float, float]:
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws)]

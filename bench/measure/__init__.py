"""Times things side by side in one process, so that a noisy machine is noisy to all alike."""

import random
import statistics
import time
from collections.abc import Callable
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
    inner = _runs_in(base, round_seconds)
    for one in (candidate, base):
        _time(one, inner)
    order = random.Random(0)
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(rounds):
        turns = [0, 1]
        order.shuffle(turns)
        for which in turns:
            times[which].append(_time((candidate, base)[which], inner))
    ratios = [mine / hers for mine, hers in zip(times[0], times[1], strict=True)]
    lower, upper = _interval(ratios)
    return Ratio(
        statistics.median(ratios),
        lower,
        upper,
        min(times[0]) / min(times[1]),
        statistics.median(times[0]),
        statistics.median(times[1]),
    )


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

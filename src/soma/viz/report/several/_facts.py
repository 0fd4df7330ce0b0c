"""Runs beside each other: which come first, what differs between them, which are in colour."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from soma.draw import Ink, counted, shortened
from soma.viz.report._curves import thinner
from soma.viz.report.several._better import Better, better
from soma.viz.report.several._one import OneRun, one_run

_MOST_READ = 1_000  # runs; the best of them are told of
MOST_RUNS = 300  # in the table
MOST_DRAWN = 100  # of them, in figures
MOST_METRICS = 12  # figures
_POINTS = 16_000  # of all figures together
_MOST_POINTS, _LEAST_POINTS = 1_000, 100  # of a curve, until it is known how many there are
_MOST_NAME = 48  # columns
_LETTERS = 6  # of an id, where two runs have one name
_HELD_OUT = {"validation", "valid", "val", "eval", "test"}

INKS: tuple[Ink, ...] = ("series1", "series2", "series3", "series4", "series5", "series6")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The metric that runs are ranked by."""

    metric: str
    better: Better


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsFacts:
    """Some runs, the best first where that can be known."""

    made_at: float  # seconds since 1970
    runs: tuple[OneRun, ...]
    goal: Goal | None
    shared: tuple[str, ...]  # metrics of two runs or more, the goal first
    better: dict[str, Better]  # by metric, where it is known
    varying: tuple[str, ...]  # params that are not the same in all
    same: dict[str, Any]  # the other params
    left_out: tuple[str, ...]

    @property
    def drawn(self) -> tuple[OneRun, ...]:
        """Those that figures show."""
        return self.runs[:MOST_DRAWN]

    def best(self, run: OneRun, metric: str) -> float | None:
        """Return the best value of a metric in a run; None where it is not known."""
        numbers = run.numbers(metric)
        if numbers is None or metric not in self.better:
            return None
        return numbers.least if self.better[metric] == "least" else numbers.greatest


def runs_facts(folders: Sequence[str | PathLike[str]]) -> RunsFacts:
    """Return what there is to tell of the runs in some directories, in that order."""
    most = max(_LEAST_POINTS, _share(len(folders), 1))
    read = [one_run(folder, most) for folder in folders[:_MOST_READ]]
    runs = [run for run in read if run is not None]
    shared = _shared(runs)
    known = {name: better(name, _with(runs, name)) for name in shared}
    sides = {name: side for name, side in known.items() if side is not None}
    goal = _goal(runs, sides)
    if goal is not None:
        runs.sort(key=lambda run: _rank(run, goal))
        shared.sort(key=lambda name: name != goal.metric)
    found = len(runs)
    runs = runs[:MOST_RUNS]
    readable = [run for run in runs if run.readable]
    varying = [name for name in _names(readable) if not _is_same(readable, name)]
    most = _share(min(len(runs), MOST_DRAWN), min(len(shared), MOST_METRICS))
    return RunsFacts(
        made_at=time.time(),
        runs=tuple(_placed(runs, shared, most)),
        goal=goal,
        shared=tuple(shared),
        better=sides,
        varying=tuple(varying),
        same={
            name: readable[0].manifest.params[name]
            for name in _names(readable)
            if name not in varying
        },
        left_out=tuple(_left_out(len(folders), read, found)),
    )


def _share(runs: int, metrics: int) -> int:
    return min(_MOST_POINTS, _POINTS // max(1, runs * metrics))


def _placed(runs: Sequence[OneRun], shared: Iterable[str], most: int) -> Iterator[OneRun]:
    """Give each run its name and colour, and take from it what no figure draws."""
    names = Counter(run.manifest.name for run in runs)
    seen: Counter[str] = Counter()
    for place, run in enumerate(runs):
        label = shortened(run.manifest.name, _MOST_NAME)
        if names[run.manifest.name] > 1:
            label = f"{label} ({run.id[-_LETTERS:]})"
        seen[label] += 1
        curves = {name: thinner(run.curves[name], most) for name in shared if name in run.curves}
        yield replace(
            run,
            curves=curves,
            label=label if seen[label] == 1 else f"{label} {seen[label]}",
            ink=INKS[place] if place < len(INKS) else run.ink,
        )


def _with(runs: Iterable[OneRun], metric: str) -> list[Any]:
    return [run.manifest for run in runs if metric in run.curves]


def _shared(runs: Sequence[OneRun]) -> list[str]:
    """Return the metrics of two runs or more; of one run alone, all."""
    counts = Counter(name for run in runs for name in run.curves)
    return [name for name, count in counts.items() if count > 1 or len(runs) == 1]


def _goal(runs: Sequence[OneRun], sides: dict[str, Better]) -> Goal | None:
    """Return what to rank by: the value of a study, else what was held out, of most runs."""

    def weight(name: str) -> tuple[bool, bool, int]:
        held_out = bool(_HELD_OUT & set(name.lower().replace("/", "_").split("_")))
        return name == "value", held_out, len(_with(runs, name))

    if not sides:
        return None
    metric = max(sides, key=weight)
    return Goal(metric=metric, better=sides[metric])


def _rank(run: OneRun, goal: Goal) -> tuple[bool, float]:
    numbers = run.numbers(goal.metric)
    value = None if numbers is None else getattr(numbers, goal.better)
    return value is None, 0.0 if value is None else value if goal.better == "least" else -value


def _names(runs: Iterable[OneRun]) -> list[str]:
    return [*dict.fromkeys(name for run in runs for name in run.manifest.params)]


def _is_same(runs: Iterable[OneRun], name: str) -> bool:
    return len({_text(run.manifest.params, name) for run in runs}) == 1


def _text(params: dict[str, Any], name: str) -> str | None:
    return json.dumps(params[name], sort_keys=True, default=str) if name in params else None


def _left_out(given: int, read: Sequence[OneRun | None], found: int) -> Iterable[str]:
    gone = len(read) - found
    if given > len(read):
        yield f"The first {len(read):,} of {given:,} runs were read."
    if found > MOST_RUNS:
        yield f"The first {MOST_RUNS} of {found:,} runs are in this file, the best where known."
    if gone:
        yield f"{counted(gone, 'run')} had been removed before this report was made."
    if found > MOST_DRAWN:
        yield f"Figures draw the first {MOST_DRAWN} of these."

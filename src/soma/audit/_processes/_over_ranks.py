"""One set of numbers from those of all ranks, as one process with the whole batch has them.

Each rank has a part of the batch and the loss of it, and gradients of parameters are averaged.
So the loss is the mean, gradients of outputs are those of the ranks over their number, and the
parts of an output make one. Ranks count alike, which is exact where their parts are of one size.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from soma.audit._step._pooled import joint_norm
from soma.health import ChannelSnapshot, Measurements, Series, Step, UnitId

_SAME = 1e-5  # norms of the same weights, or of the same averaged gradients, differ by less
_ALIKE = ("param_norm", "param_grad_norm")
T = TypeVar("T", Step, ChannelSnapshot)
Pool = Callable[[Sequence[float], int], float]  # values, and how many ranks there are


def over_ranks(by_rank: Mapping[int, Measurements]) -> Measurements:
    """Return the numbers of all ranks together; `notes` say where ranks do not agree.

    Where a rank has not measured a step whole, the others stand for it.

    Args:
        by_rank: what each has measured.
    """
    first = by_rank[min(by_rank)]
    every, size = list(by_rank.values()), len(by_rank)
    found = Measurements(every=max(one.every for one in every))
    for measured in reversed(every):  # the first rank's count
        found.units |= measured.units
        found.correlation |= measured.correlation
        found.correlation_channels |= measured.correlation_channels
    found.units = {id: found.units[id] for id in [*first.units, *found.units]}
    found.steps = [_step(steps, size) for steps in _by_step(one.steps for one in every)]
    for id in dict.fromkeys(id for one in every for id in one.series):
        mine = [one.series.get(id, {}) for one in every]
        for name in dict.fromkeys(name for named in mine for name in named):
            several = [named[name] for named in mine if name in named]
            found.series.setdefault(id, {})[name] = _pooled(name, several, size)
    for id in dict.fromkeys(id for one in every for id in one.channels):
        seen = _by_step(one.channels.get(id, ()) for one in every)
        found.channels[id] = [_snapshot(several) for several in seen]
    for id in dict.fromkeys(id for one in every for id in one.similarity):
        pairs = [one.similarity.get(id, {}) for one in every]
        for pair in dict.fromkeys(pair for named in pairs for pair in named):
            several = [named[pair] for named in pairs if pair in named]
            found.similarity.setdefault(id, {})[pair] = _pooled("similarity", several, size)
    origins = [one for measured in every for one in measured.origins]
    found.origins = sorted(origins, key=lambda one: (one.step, one.unit is None))[:1]
    found.notes = [*_disagreements(by_rank), *dict.fromkeys(n for one in every for n in one.notes)]
    return found


def _mean(values: Sequence[float], size: int) -> float:
    return sum(values) / len(values)


def _rms(values: Sequence[float], size: int) -> float:
    return joint_norm(values) / math.sqrt(len(values))


def _whole(values: Sequence[float], size: int) -> float:
    return _rms(values, size) * math.sqrt(size)


def _averaged(values: Sequence[float], size: int) -> float:
    return _rms(values, size) / math.sqrt(size)


def _least(values: Sequence[float], size: int) -> float:
    return math.nan if any(map(math.isnan, values)) else min(values)


def _most(values: Sequence[float], size: int) -> float:
    return math.nan if any(map(math.isnan, values)) else max(values)


# Of all others the mean: shares, means, and what is the same on each rank.
_POOLS: dict[str, Pool] = {
    "act_norm": _whole,
    "act_std": _rms,  # about each rank's own mean
    "act_min": _least,
    "act_max": _most,
    "out_grad_norm": _averaged,
    "out_grad_max": lambda values, size: _most(values, size) / size,
    "stale": _most,
}


def _pooled(name: str, several: Sequence[Series], size: int) -> Series:
    pool = _POOLS.get(name, _mean)
    by_step: dict[int, list[float]] = {}
    for one in several:
        for step, value in zip(one.steps, one.values, strict=True):
            by_step.setdefault(step, []).append(value)
    steps = sorted(by_step)
    return Series(steps=steps, values=[pool(by_step[step], size) for step in steps])


def _by_step(several: Iterable[Iterable[T]]) -> list[list[T]]:
    by_step: dict[int, list[T]] = {}
    for mine in several:
        for one in mine:
            by_step.setdefault(one.step, []).append(one)
    return [by_step[step] for step in sorted(by_step)]


def _step(steps: Sequence[Step], size: int) -> Step:
    losses = [one.loss for one in steps if one.loss is not None]
    whole = [one for one in steps if one.whole] or steps
    return Step(
        step=steps[0].step,
        whole=any(one.whole for one in steps),
        skipped=all(one.skipped for one in steps),
        loss=_mean(losses, size) if losses else None,
        grad_norm=_mean([one.grad_norm for one in steps], size),
        grad_norm_at_step=_mean([one.grad_norm_at_step for one in steps], size),
        output_grad_norm=_averaged([one.output_grad_norm for one in whole], size),
        output_norm=_whole([one.output_norm for one in whole], size),
        stale=any(one.stale for one in steps),
    )


def _snapshot(several: Sequence[ChannelSnapshot]) -> ChannelSnapshot:
    first = several[0]
    alike = [one for one in several if len(one.largest) == len(first.largest)]
    given = [one.input_rms for one in alike if one.input_rms is not None]
    return replace(
        first,
        largest=_columns(_most, [one.largest for one in alike]),
        deviation=_columns(_rms, [one.deviation for one in alike]),
        gradient=_columns(_mean, [one.gradient for one in alike]),
        input_rms=_rms(given, len(given)) if given else None,
        samples=sum(one.samples for one in alike),
    )


def _columns(pool: Pool, rows: Sequence[Sequence[float]]) -> list[float]:
    return [pool(column, len(rows)) for column in zip(*rows, strict=False)]


def _disagreements(by_rank: Mapping[int, Measurements]) -> list[str]:
    """Say where ranks differ that should not, each kind once."""
    told = [_differing(by_rank, name) for name in _ALIKE]
    found = [one for one in told if one is not None]
    bad = {rank: min(_bad_steps(one), default=math.inf) for rank, one in by_rank.items()}
    if len(set(bad.values())) > 1:
        step = min(bad.values())
        ranks = ", ".join(f"rank {rank}" for rank, one in bad.items() if one == step)
        found.append(f"numbers were not finite at step {step} on {ranks} alone")
    counts = {rank: len(one.steps) for rank, one in by_rank.items()}
    if len(set(counts.values())) > 1:
        ranks = ", ".join(f"{count} on rank {rank}" for rank, count in counts.items())
        found.append(f"ranks have taken different numbers of steps: {ranks}")
    whole = {rank: [one.step for one in m.steps if one.whole] for rank, m in by_rank.items()}
    if len(set(map(tuple, whole.values()))) > 1:
        found.append(
            "ranks have measured different steps whole, since each keeps to its own budget; where "
            "one has not, the others stand for it. `budget=None` has all measure every step"
        )
    return found


def _differing(by_rank: Mapping[int, Measurements], name: str) -> str | None:
    """Say since which step a number differs between ranks that is the same on all of them."""
    first, *others = by_rank.items()
    found: list[tuple[int, int, int, UnitId]] = []  # the innermost of several is where it is
    for rank, measured in others:
        for id, named in first[1].series.items():
            here, there = named.get(name), measured.series.get(id, {}).get(name)
            if here is None or there is None:
                continue
            known = dict(zip(here.steps, here.values, strict=True))
            for step, value in zip(there.steps, there.values, strict=True):
                if step in known and not _are_same(known[step], value):
                    found.append((step, rank, -len(id), id))
                    break
    if not found:
        return None
    step, rank, _, id = min(found)
    what = {"param_norm": "weights", "param_grad_norm": "gradients of weights"}[name]
    return (
        f"{what} of `{id}` differ between rank {first[0]} and rank {rank} since step {step}: "
        "something moves them on one rank alone, or gradients are not averaged"
    )


def _are_same(one: float, other: float) -> bool:
    if not (math.isfinite(one) and math.isfinite(other)):
        return True  # told as numbers that are not finite
    return math.isclose(one, other, rel_tol=_SAME)


def _bad_steps(measured: Measurements) -> Iterable[int]:
    """Give the steps with an output that is not finite: gradients are averaged, so all have it."""
    for named in measured.series.values():
        masked = named.get("act_masked_frac", Series())
        masks = dict(zip(masked.steps, masked.values, strict=True))
        shares = named.get("act_bad_frac", Series())
        for step, value in zip(shares.steps, shares.values, strict=True):
            if value > masks.get(step, 0.0):  # a mask is no fault
                yield step
    for one in measured.steps:
        if one.loss is not None and not math.isfinite(one.loss):
            yield one.step

"""`Settler`: makes plain numbers of a step that has ended, when all of them have arrived.

`_pooled.py` does the arithmetic for one unit; here they are put into `Measurements`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from soma.audit._measure._boards import Boards, Row
from soma.audit._measure._channels import ChannelOutput, channel_rows, pooled
from soma.audit._measure._similarity import Pool, debiased_cka
from soma.audit._measure._spectrum import Spectrum
from soma.audit._parameters._weights import Numbers, Weights
from soma.audit._spots import Spot
from soma.audit._step._passes import Call, Taken
from soma.audit._step._pooled import (
    StepWeights,
    activation_metrics,
    gradient_metrics,
    input_rms,
    root,
)
from soma.health._numbers import ChannelSnapshot, Measurements, Series, Step, UnitId

# As attention uses its last layer's, and as a module does that was compiled with its hooks on.
USED = "its weights are used, and it is not called"

_MANY = 16  # steps that may wait to be filled in


@dataclass(slots=True)
class _Channels:
    """Numbers by channel, on their way."""

    row: Row
    count: int
    samples: int


@dataclass(slots=True)
class _Ended:
    """A step that has ended, with numbers that may still be on their way."""

    taken: Taken
    numbers: Numbers
    skipped: bool
    trainable: list[bool]  # by parameter, as the step ended
    channels: dict[int, _Channels]
    similarity: dict[int, tuple[list[tuple[str, str]], Row]]


class Settler:
    """Fills the measurements, step by step."""

    def __init__(
        self,
        measurements: Measurements,
        spots: list[Spot],
        weights: Weights,
        boards: Boards,
        pools: dict[int, Pool],
    ) -> None:
        self.described: Callable[[], None] = lambda: None  # goes on with units elsewhere
        self._pools = pools
        self._measurements = measurements
        self._spots = spots
        self._weights = weights
        self._boards = boards
        self._waiting: list[_Ended] = []

    def take(self, taken: Taken, numbers: Numbers, *, skipped: bool) -> None:
        """Take a step that has ended."""
        channels = self._channels(taken)
        similarity = {}
        if channels:
            for at, pool in self._pools.items():
                if (rows := pool.rows()) is not None and len(rows) > 3:
                    similarity[at] = self._similarity(at, rows)
        trainable = [weight.parameter.requires_grad for weight in self._weights.all]
        self._waiting.append(_Ended(taken, numbers, skipped, trainable, channels, similarity))

    @property
    def has_many(self) -> bool:
        """Whether so many steps wait that it is time to fill them in."""
        return len(self._waiting) >= _MANY

    def settle(self) -> bool:
        """Fill in the steps whose numbers are all there; say whether there was any."""
        if not self._waiting or self._boards.is_waiting:
            return False
        for ended in self._waiting:
            self._fill(ended)
        self._waiting.clear()
        return True

    def take_back(self, step: int) -> None:
        """Take a step out again, because it goes on."""
        measured = self._measurements
        for by_name in (*measured.series.values(), *measured.similarity.values()):
            for series in by_name.values():  # type: ignore[attr-defined]
                while series.steps and series.steps[-1] == step:
                    series.steps.pop()
                    series.values.pop()
        for snapshots in measured.channels.values():
            while snapshots and snapshots[-1].step == step:
                snapshots.pop()
        while measured.steps and measured.steps[-1].step == step:
            measured.steps.pop()

    def describe(self) -> None:
        """Bring the units up to date."""
        self._measurements.units.update((spot.id, spot.described()) for spot in self._spots)
        self.described()

    def _channels(self, taken: Taken) -> dict[int, _Channels]:
        """Return the numbers by channel of all spots."""
        outputs: dict[int, ChannelOutput] = {}
        gradients: dict[int, list[Tensor]] = {}
        for at, calls in _calls(taken).items():
            readings = [call.parts[0][1] for call in calls if call.parts]
            seen = [one.channels for one in readings if one.channels is not None]
            if seen and len({one.channels for one in seen}) == 1:
                outputs[at] = pooled(seen)
                gradients[at] = [
                    gradient
                    for one in readings
                    for task, gradient in one.channel_gradients
                    if one.channels is not None and taken.is_real(task)
                ]
        found = {}
        rows = channel_rows(list(outputs.values())) if outputs else ((), ())
        for (at, output), largest, deviation in zip(outputs.items(), *rows, strict=True):
            came = gradients[at]
            parts = [largest, deviation]
            if came:
                parts.append(came[0] if len(came) == 1 else torch.stack(came).sum(0))
            row = self._boards.put(torch.cat(parts))
            found[at] = _Channels(row, output.channels, output.samples)
        return found

    def _similarity(self, at: int, rows: torch.Tensor) -> tuple[list[tuple[str, str]], Row]:
        groups = self._spots[at].groups
        most = rows.shape[1]
        for name, members in groups.items():
            if members and max(members) >= most:
                raise IndexError(
                    f"group `{name}` of `{self._spots[at].id}` names channel {max(members)}; "
                    f"its output has {most}"
                )
        pairs = list(combinations(groups, 2))
        found = [debiased_cka(rows[:, groups[a]], rows[:, groups[b]]) for a, b in pairs]
        return pairs, self._boards.put_all(found)

    def _fill(self, ended: _Ended) -> None:
        taken, numbers, step = ended.taken, ended.numbers, ended.taken.number
        scale = 1.0 if numbers.scale is None else numbers.scale.values[0]
        weights = StepWeights(self._weights, ended.trainable, taken.arrived, numbers, scale)
        for at, calls in _calls(taken).items():
            self._fill_calls(self._spots[at], calls, taken, scale)
        for at, spot in enumerate(self._spots):
            if (
                spot.order < 0
                and spot.unobserved is None
                and spot.weights_of is None
                and taken.arrived.intersection(spot.weights)
            ):
                spot.weights_of = self._caller(spot)
                spot.unobserved = USED if spot.weights_of is None else None
            metrics = weights.metrics(spot.weights, whole=taken.whole)
            if at in taken.calls:
                metrics["calls"] = float(taken.calls[at])
            elif at in taken.dark:
                metrics["calls_unrecorded"] = float(taken.dark[at])
                metrics["optimized"] = float(not taken.held.isdisjoint(spot.weights))
            self._put(spot.id, step, metrics)
        for at, channels in ended.channels.items():
            self._fill_channels(self._spots[at], channels, _calls(taken)[at], step, scale)
        for at, (pairs, row) in ended.similarity.items():
            by_pair = self._measurements.similarity.setdefault(self._spots[at].id, {})
            for pair, value in zip(pairs, row.values, strict=True):
                if math.isfinite(value):
                    _append(by_pair.setdefault(pair, Series()), step, value)
        for at, one in taken.spectra.items():
            self._fill_spectrum(self._spots[at].id, one, step)
        self._measurements.steps.append(self._step(ended, weights, scale))

    def _fill_calls(self, spot: Spot, calls: list[Call], taken: Taken, scale: float) -> None:
        rows = [one.activation for call in calls for _, one in call.parts if one.activation]
        parts = [one for call in calls for _, one in call.parts]
        tensors = [one for one in parts if not one.is_number]  # beside them, a loss tells nothing
        gradients = [
            row for one in tensors or parts for task, row in one.gradients if taken.is_real(task)
        ]
        metrics = activation_metrics(rows) | gradient_metrics(gradients, scale)
        self._put(spot.id, taken.number, metrics)
        if any(len(call.parts) > 1 for call in calls):
            self._fill_parts(spot, calls, taken, scale)

    def _fill_parts(self, spot: Spot, calls: list[Call], taken: Taken, scale: float) -> None:
        """Each tensor of a container has series of its own, beside the unit's that pool them."""
        for suffix in dict.fromkeys(suffix for call in calls for suffix, _ in call.parts):
            parts = [one for call in calls for name, one in call.parts if name == suffix]
            gradients = [row for one in parts for task, row in one.gradients if taken.is_real(task)]
            metrics = activation_metrics([one.activation for one in parts if one.activation])
            self._put(spot.id + suffix, taken.number, metrics | gradient_metrics(gradients, scale))

    def _fill_channels(
        self, spot: Spot, channels: _Channels, calls: list[Call], step: int, scale: float
    ) -> None:
        values, count = channels.row.values, channels.count
        self._measurements.channels.setdefault(spot.id, []).append(
            ChannelSnapshot(
                step=step,
                samples=channels.samples,
                largest=list(values[:count]),
                deviation=list(values[count : 2 * count]),
                gradient=_unscaled(values[2 * count :], scale),
                input_rms=input_rms([call.input for call in calls if call.input is not None]),
            )
        )

    def _fill_spectrum(self, unit: UnitId, found: Spectrum, step: int) -> None:
        (rank,), matrix = found.effective_rank.values, found.correlation.values
        if math.isfinite(rank):
            self._put(unit, step, {"effective_rank": rank})
        side = len(found.channels)
        self._measurements.correlation[unit] = [
            list(matrix[at : at + side]) for at in range(0, side * side, side)
        ]
        self._measurements.correlation_channels[unit] = list(found.channels)

    def _step(self, ended: _Ended, weights: StepWeights, scale: float) -> Step:
        taken, numbers = ended.taken, ended.numbers
        outputs = [one for at_pass in taken.passes for one in at_pass.outputs]
        outputs = list(dict.fromkeys(outputs))
        gradients = [row for one in outputs for task, row in one.gradients if taken.is_real(task)]
        activations = [one.activation for one in outputs if one.activation]
        found_inf = numbers.found_inf is not None and numbers.found_inf.values[0] > 0
        left, at_step = taken.elsewhere or (0.0, 0.0)
        grad_norm = root((weights.total(weights.left), left))
        return Step(
            step=taken.number,
            whole=taken.whole,
            skipped=found_inf or (ended.skipped and not math.isfinite(grad_norm)),
            loss=sum(row.values[0] for row in taken.loss) / scale if taken.loss else None,
            grad_norm=grad_norm,
            grad_norm_at_step=root((weights.total(weights.at_step), at_step)),
            output_grad_norm=gradient_metrics(gradients, scale).get("out_grad_norm", math.nan),
            output_norm=root(row.values[6] for row in activations) if activations else math.nan,
            stale=bool(numbers.stale),
        )

    def _caller(self, spot: Spot) -> UnitId | None:
        """Return the called spot elsewhere that has all weights of one that is not; None: none."""
        mine = set(spot.weights)
        above = f"{spot.path}."
        return next(
            (
                other.id
                for other in self._spots
                if other.order >= 0
                and mine <= set(other.weights)
                and not (other.node == spot.node and above.startswith(f"{other.path}."))
                and other.path
            ),
            None,
        )

    def _put(self, unit: UnitId, step: int, metrics: dict[str, float]) -> None:
        by_name = self._measurements.series.setdefault(unit, {})
        for name, value in metrics.items():
            series = by_name.get(name)
            if series is None:
                series = by_name[name] = Series()
            series.steps.append(step)
            series.values.append(value)


def _unscaled(values: Sequence[float], scale: float) -> list[float]:
    return list(values) if scale == 1.0 else [one / scale for one in values]


def _append(series: Series, step: int, value: float) -> None:
    series.steps.append(step)
    series.values.append(value)


def _calls(taken: Taken) -> dict[int, list[Call]]:
    """Return the calls of each spot over all passes of a step."""
    if len(taken.passes) == 1:
        return taken.passes[0].calls
    found: dict[int, list[Call]] = {}
    for at_pass in taken.passes:
        for at, calls in at_pass.calls.items():
            found.setdefault(at, []).extend(calls)
    return found

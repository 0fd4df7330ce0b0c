"""`Settler`: puts the numbers of steps that have ended into `Measurements`, once all are at hand.

`_pooled.py` and `_parameters/_metrics.py` do the arithmetic for one unit, and name the metrics.
"""

import math
from collections.abc import Callable, Sequence

from soma.audit._measure._boards import Boards
from soma.audit._measure._layout import NORM_OF_ACTIVATION
from soma.audit._measure._similarity import Pool
from soma.audit._measure._spectrum import Spectrum
from soma.audit._parameters._metrics import StepMetrics
from soma.audit._parameters._weights import Weights
from soma.audit._spots import Spot
from soma.audit._step._ended import (
    ChannelRow,
    EndedStep,
    calls_of,
    gradients_of,
    rows_of_channels,
    rows_of_groups,
)
from soma.audit._step._pooled import activation_metrics, gradient_metrics, input_rms, joint_norm
from soma.audit._step._trace import Call, StepTrace
from soma.health import ChannelSnapshot, Measurements, Series, Step, UnitId

# As attention uses its last layer's, and as a module does that was compiled with its hooks on.
USED = "its weights are used, and it is not called"

_MANY = 16  # steps that may wait to be filled in


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
        self._waiting: list[EndedStep] = []

    def take(self, step: StepTrace, *, skipped: bool) -> None:
        """Take a step that has ended; what its channels say goes on its way to Python."""
        channels = rows_of_channels(step, self._boards)
        similarity = {}
        if channels:
            for at, pool in self._pools.items():
                if (rows := pool.rows()) is not None and len(rows) > 3:
                    similarity[at] = rows_of_groups(self._spots[at], rows, self._boards)
        trainable = [weight.parameter.requires_grad for weight in self._weights.all]
        self._waiting.append(EndedStep(step, skipped, trainable, channels, similarity))

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

    def _fill(self, ended: EndedStep) -> None:
        step = ended.step
        scale = 1.0 if step.norms.scale is None else step.norms.scale.values[0]
        parameters = StepMetrics(
            self._weights.all, ended.trainable, step.arrived, step.norms, scale
        )
        parameters.remember()
        calls = calls_of(step)
        for at, mine in calls.items():
            self._fill_calls(self._spots[at], mine, step, scale)
        self._fill_parameters(step, parameters)
        for at, channels in ended.channels.items():
            self._fill_channels(self._spots[at], channels, calls[at], step.number, scale)
        for at, (pairs, row) in ended.similarity.items():
            by_pair = self._measurements.similarity.setdefault(self._spots[at].id, {})
            for pair, value in zip(pairs, row.values, strict=True):
                if math.isfinite(value):
                    _append(by_pair.setdefault(pair, Series()), step.number, value)
        for at, one in step.spectra.items():
            self._fill_spectrum(self._spots[at].id, one, step.number)
        self._measurements.steps.append(self._step(ended, parameters, scale))

    def _fill_parameters(self, step: StepTrace, parameters: StepMetrics) -> None:
        """Put in the numbers of each spot's parameters, and how often it was called."""
        for at, spot in enumerate(self._spots):
            if (
                spot.order < 0
                and spot.unobserved is None
                and spot.weights_of is None
                and step.arrived.intersection(spot.weights)
            ):
                spot.weights_of = self._caller(spot)
                spot.unobserved = USED if spot.weights_of is None else None
            metrics = parameters.metrics(spot.weights, whole=step.whole)
            if at in step.calls:
                metrics["calls"] = float(step.calls[at])
            elif at in step.calls_without_grad:
                metrics["calls_unrecorded"] = float(step.calls_without_grad[at])
                metrics["optimized"] = float(not step.held.isdisjoint(spot.weights))
            self._put(spot.id, step.number, metrics)

    def _fill_calls(self, spot: Spot, calls: list[Call], step: StepTrace, scale: float) -> None:
        """Put in the numbers of a spot's outputs and of the gradients that came to them."""
        parts = [one for call in calls for _, one in call.parts]
        rows = [one.activation for one in parts if one.activation]
        tensors = [one for one in parts if not one.is_scalar]  # beside them, a loss tells nothing
        gradients = gradients_of(tensors or parts, step)
        metrics = activation_metrics(rows) | gradient_metrics(gradients, scale)
        self._put(spot.id, step.number, metrics)
        if any(len(call.parts) > 1 for call in calls):
            self._fill_parts(spot, calls, step, scale)

    def _fill_parts(self, spot: Spot, calls: list[Call], step: StepTrace, scale: float) -> None:
        """Put in series for each tensor of a container, beside the unit's that pool them."""
        for suffix in dict.fromkeys(suffix for call in calls for suffix, _ in call.parts):
            parts = [one for call in calls for name, one in call.parts if name == suffix]
            metrics = activation_metrics([one.activation for one in parts if one.activation])
            metrics |= gradient_metrics(gradients_of(parts, step), scale)
            self._put(spot.id + suffix, step.number, metrics)

    def _fill_channels(
        self, spot: Spot, channels: ChannelRow, calls: list[Call], step: int, scale: float
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

    def _step(self, ended: EndedStep, parameters: StepMetrics, scale: float) -> Step:
        step = ended.step
        outputs = list(dict.fromkeys(one for each in step.passes for one in each.outputs))
        gradients = gradient_metrics(gradients_of(outputs, step), scale)
        activations = [one.activation for one in outputs if one.activation]
        found_inf = step.norms.found_inf
        after_backward, at_step = step.elsewhere or (0.0, 0.0)
        grad_norm = joint_norm((parameters.total(parameters.after_backward), after_backward))
        return Step(
            step=step.number,
            whole=step.whole,
            skipped=(found_inf is not None and found_inf.values[0] > 0)
            or (ended.skipped and not math.isfinite(grad_norm)),
            loss=sum(row.values[0] for row in step.loss) / scale if step.loss else None,
            grad_norm=grad_norm,
            grad_norm_at_step=joint_norm((parameters.total(parameters.at_step), at_step)),
            output_grad_norm=gradients.get("out_grad_norm", math.nan),
            output_norm=joint_norm(row.values[NORM_OF_ACTIVATION] for row in activations)
            if activations
            else math.nan,
            stale=bool(step.norms.stale),
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

"""What rules look at: measurements, cut to the steps that can be judged, and who is who.

Rules get a `Facts` and nothing else. Every number that they compare is a ratio of two numbers
of this run, so a verdict does not depend on the scale of a loss or of data.
"""

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import takewhile
from statistics import median

from soma.health._family import Family
from soma.health._measurements import ChannelSnapshot, Measurements, Series, Step, UnitId
from soma.health._thresholds import Thresholds

Points = list[tuple[int, float]]  # step and value

_BOUNDED = {"sigmoid", "tanh", "softmax", "log_softmax", "hardtanh", "hardsigmoid", "softsign"}

_SOLVED = 5.0  # gradient times output over loss, which grows without bound as a loss is solved
_TO_GAIN = 1e-2  # strength of all gradients over the loss, below which there is nothing to gain


class Facts:
    """Measurements with the questions that rules ask of them."""

    def __init__(self, measured: Measurements, thresholds: Thresholds) -> None:
        self.measured = measured
        self.thresholds = thresholds
        self.units = measured.units
        self.family = Family(measured.units)
        self._cut: dict[tuple[UnitId, str], Points] = {}
        self._shares: dict[UnitId, float | None] = {}

    @cached_property
    def steps(self) -> dict[int, Step]:
        """The steps that can be judged: taken, measured whole, and before any fault in numbers."""
        end = self.first_fault
        return {
            one.step: one
            for one in self.measured.steps
            if one.whole and not one.skipped and (end is None or one.step < end)
        }

    @cached_property
    def window(self) -> frozenset[int]:
        """The last half of the steps."""
        ordered = sorted(self.steps)
        return frozenset(ordered[len(ordered) // 2 :])

    @cached_property
    def first_fault(self) -> int | None:
        """The first step with a number that is not finite and should be; None: there is none."""
        faults = [one for id in self.units if (one := self.fault(id)) is not None]
        born = [one.step for one in self.measured.origins]
        born += [
            one.step
            for one in self.measured.steps
            if not one.skipped and not math.isfinite(one.grad_norm)
        ]
        return min([*(step for step, _, _ in faults), *born], default=None)

    def fault(self, id: UnitId) -> tuple[int, str, str] | None:
        """Say when, in which phase and to what (`nan`, `inf`) numbers of a unit went bad."""
        mine = self.measured.series.get(id, {})
        found: list[tuple[int, int, str, str]] = []
        for rank, (phase, share, peak) in enumerate(_PHASES):
            bad = [step for step, value in pairs(mine.get(share)) if value > 0]
            for step in bad:
                if step in self._skipped or (rank == 0 and self._is_mask(mine, step)):
                    continue
                nan = any(math.isnan(at(mine.get(name), step) or 0.0) for name in peak)
                found.append((step, rank, phase, "nan" if nan else "inf"))
                break
        if not found:
            return None
        step, _, phase, value = min(found)
        if phase == "backward" and any(one[0] == step and one[3] == "nan" for one in found):
            value = "nan"  # what was infinite at its output is so in its weights
        return step, phase, value

    def _is_mask(self, named: Mapping[str, Series], step: int) -> bool:
        """Is all that is not finite in an output infinite on purpose, with a finite gradient?"""
        masked = at(named.get("act_masked_frac"), step) or 0.0
        bad = at(named.get("act_bad_frac"), step) or 0.0
        if (at(named.get("out_grad_bad_frac"), step) or 0.0) > 0:
            return False
        if masked >= bad:
            return True
        highest = at(named.get("act_max"), step)
        if highest is None or math.isnan(highest) or step not in self._unharmed:
            return False
        shares = {value for _, value in pairs(named.get("act_bad_frac"))}
        return len(shares) == 1 and bad < 1  # what overflows is not always as much

    @cached_property
    def _unharmed(self) -> frozenset[int]:
        """The steps whose loss, where it is known, and gradients are finite."""
        return frozenset(
            one.step
            for one in self.measured.steps
            if math.isfinite(one.grad_norm) and math.isfinite(one.loss or 0.0)
        )

    @cached_property
    def _skipped(self) -> frozenset[int]:
        return frozenset(one.step for one in self.measured.steps if one.skipped)

    def watched(self, id: UnitId, name: str) -> Points:
        """Return a number of a unit over all steps before a fault, those not measured whole too."""
        end = math.inf if self.first_fault is None else self.first_fault
        mine = pairs(self.measured.series.get(id, {}).get(name))
        return [(step, value) for step, value in mine if step < end and step not in self._skipped]

    def points(self, id: UnitId, name: str) -> Points:
        """Return a number of a unit over all steps that can be judged."""
        if (id, name) not in self._cut:
            mine = pairs(self.measured.series.get(id, {}).get(name))
            self._cut[id, name] = [one for one in mine if one[0] in self.steps]
        return self._cut[id, name]

    def recent(self, id: UnitId, name: str) -> list[float]:
        """Return a number of a unit over the window."""
        return [value for step, value in self.points(id, name) if step in self.window]

    def middle(self, id: UnitId, name: str) -> float | None:
        """Return the median of a number of a unit over the window."""
        return middle(self.recent(id, name))

    def snapshots(self, id: UnitId) -> list[ChannelSnapshot]:
        """Return the last half of what was seen of a unit's channels."""
        seen = [one for one in self.measured.channels.get(id, []) if one.step in self.steps]
        recent = [one for one in seen if one.step in self.window]
        return max(recent, seen[len(seen) // 2 :], key=len)

    def called(self, id: UnitId) -> bool:
        """Was a unit called in any step?"""
        return self.units[id].order >= 0 or any(value > 0 for _, value in self.points(id, "calls"))

    def frozen(self, id: UnitId) -> bool:
        """Does a unit, or something that it is a part of, keep its parameters by choice?"""
        return any(
            one.parameters > 0 and one.trainable == 0
            for one in (self.units[id], *self.family.above(id))
        )

    @cached_property
    def references(self) -> dict[int, float]:
        """The gradient that gradients are compared to, by step.

        It is the one at the network's output; where that is a sigmoid, a tanh or a softmax, the
        one before it, since a flat output of a solved problem is no fault of the layers below.
        """
        found = {step: one.output_grad_norm for step, one in self.steps.items()}
        for unit in self.units.values():
            bounded = unit.feeds_output and unit.activation in _BOUNDED
            if bounded and (last := self.family.before(unit.id)) is not None:
                for step, value in self.points(last.id, "out_grad_norm"):
                    if value > 0:
                        found[step] = min(found[step], value)
        return {step: value for step, value in found.items() if 0 < value < math.inf}

    def gradients(self, id: UnitId) -> Points:
        """Return the gradient at a unit's output over the reference, where there was one."""
        return [
            (step, value / self.references[step])
            for step, value in self.points(id, "out_grad_norm")
            if step in self.references
        ]

    def worth(self, step: int) -> float:
        """Return what gradients times values amount to at the output: at least the loss."""
        one = self.steps[step]
        product = one.output_norm * one.output_grad_norm
        return max(product, abs(one.loss or 0.0)) if math.isfinite(product) else 0.0

    def share(self, id: UnitId) -> float | None:
        """Return the median of `gradients` over the window, without steps that gave it none."""
        if id not in self._shares:
            recent = [value for step, value in self.gradients(id) if step in self.window]
            self._shares[id] = middle([value for value in recent if value > 0])
        return self._shares[id]

    def products(self, id: UnitId) -> Points:
        """Return gradient times output of a unit, over the same of the network.

        It stays as it is where a scale is undone further on, as by a normalisation.
        """
        outputs = dict(self.points(id, "act_norm"))
        return [
            (step, value * outputs[step] / worth)
            for step, value in self.points(id, "out_grad_norm")
            if step in outputs and (worth := self.worth(step)) > 0
        ]

    @cached_property
    def losses(self) -> list[float]:
        """The losses, where they say how well training goes."""
        known = [one.loss for _, one in sorted(self.steps.items())]
        return [] if self._takes_turns else [one for one in known if one is not None]

    @cached_property
    def _takes_turns(self) -> bool:
        """Do parts of the network train in turns, as in a game of two, where losses may rise?"""
        turns = {
            frozenset(step for step, moved in self.points(id, "moved") if moved > 0)
            for id in self.family.holders
        } - {frozenset()}
        return any(not one & other for one in turns for other in turns)

    @cached_property
    def loss_fell(self) -> bool | None:
        """Did the loss fall since the first step? None: it is not known."""
        if len(self.losses) < 2 or not all(math.isfinite(one) for one in self.losses):
            return None
        first = self.losses[0]
        last = median(self.losses[len(self.losses) // 2 :])
        return first - last >= self.thresholds.lr_high_fall * abs(first)

    @cached_property
    def unsolved(self) -> bool:
        """Is there a loss left that did not fall, and a gradient that would lower it?"""
        last = [self.steps[step] for step in sorted(self.window)]
        if not last or any(not one.loss for one in last) or self.loss_fell:
            return False
        strengths = [self.middle(id, "grad_strength") or 0.0 for id in self.family.holders]
        strength = math.hypot(*strengths)
        solved = [one.output_norm * one.output_grad_norm / abs(one.loss or 1.0) for one in last]
        gain = [strength / worth for one in last if (worth := self.worth(one.step)) > 0]
        return bool(gain) and median(solved) < _SOLVED and median(gain) > _TO_GAIN


_PHASES = (
    ("forward", "act_bad_frac", ("act_max", "act_min")),
    ("backward", "out_grad_bad_frac", ("out_grad_max", "out_grad_norm")),
    ("weights", "param_grad_bad_frac", ("param_grad_norm",)),
)


def at(series: Series | None, step: int) -> float | None:
    """Return the value of a series at a step; None: it has none there."""
    if series is None or step not in series.steps:
        return None
    return series.values[series.steps.index(step)]


def pairs(series: Series | None) -> Points:
    """Return a series as pairs of step and value."""
    return [] if series is None else list(zip(series.steps, series.values, strict=True))


def middle(values: list[float]) -> float | None:
    """Return the median of numbers; None: there is none."""
    finite = [one for one in values if math.isfinite(one)]
    return median(finite) if finite else None


def since(points: Points, low: float, high: float = math.inf) -> int:
    """Return the first step of the last stretch whose values are all from `low` to `high`."""
    stretch = list(takewhile(lambda one: low <= one[1] <= high, reversed(points)))
    if stretch:
        return stretch[-1][0]
    return next((step for step, value in points if low <= value <= high), points[-1][0])

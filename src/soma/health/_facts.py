"""What rules look at: measurements, cut to the steps that can be judged, and who is who.

Rules get a `Facts` and nothing else. Every number that they compare is a ratio of two numbers
of this run, so a verdict does not depend on the scale of a loss or of data.
"""

import math
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import takewhile
from statistics import median

from soma.health._numbers import ChannelSnapshot, Measurements, Series, Step, Unit, UnitId
from soma.health._thresholds import Thresholds

Points = list[tuple[int, float]]  # step and value

_BOUNDED = {"sigmoid", "tanh", "softmax", "log_softmax", "hardtanh", "hardsigmoid", "softsign"}


class Facts:
    """Measurements with the questions that rules ask of them."""

    def __init__(self, measured: Measurements, thresholds: Thresholds) -> None:
        self.measured = measured
        self.thresholds = thresholds
        self.units = measured.units

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
        skipped = {one.step for one in self.measured.steps if one.skipped}
        mine = self.measured.series.get(id, {})
        found: list[tuple[int, int, str, str]] = []
        for rank, (phase, share, peak) in enumerate(_PHASES):
            extremes = [pairs(mine.get(name)) for name in peak]
            for step, bad in pairs(mine.get(share)):
                if step in skipped or not bad > 0 or (rank == 0 and self._is_mask(id, step)):
                    continue
                nan = any(math.isnan(dict(one).get(step, 0.0)) for one in extremes)
                found.append((step, rank, phase, "nan" if nan else "inf"))
                break
        if not found:
            return None
        step, _, phase, value = min(found)
        return step, phase, value

    def _is_mask(self, id: UnitId, step: int) -> bool:
        """Is all that is not finite in an output -inf, with a gradient that is finite?"""
        mine = self.measured.series[id]
        bad, masked, gradient = (
            dict(pairs(mine.get(name))).get(step, 0.0)
            for name in ("act_bad_frac", "act_masked_frac", "out_grad_bad_frac")
        )
        return masked >= bad and not gradient > 0

    def watched(self, id: UnitId, name: str) -> Points:
        """Return a number of a unit over all steps before a fault, those not measured whole too."""
        skipped = {one.step for one in self.measured.steps if one.skipped}
        end = math.inf if self.first_fault is None else self.first_fault
        mine = pairs(self.measured.series.get(id, {}).get(name))
        return [(step, value) for step, value in mine if step < end and step not in skipped]

    def points(self, id: UnitId, name: str) -> Points:
        """Return a number of a unit over all steps that can be judged."""
        return [
            (step, value)
            for step, value in pairs(self.measured.series.get(id, {}).get(name))
            if step in self.steps
        ]

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

    def above(self, id: UnitId) -> Iterator[Unit]:
        """Return the units that a unit is a part of, nearest first."""
        found = [one for one in self.units.values() if contains(one, self.units[id])]
        yield from sorted(found, key=lambda one: len(one.path), reverse=True)

    @cached_property
    def holders(self) -> frozenset[UnitId]:
        """The units whose parameters are judged: none below them has trainable ones."""
        trainable = [one for one in self.units.values() if one.trainable]
        return frozenset(
            one.id for one in trainable if not any(contains(one, other) for other in trainable)
        )

    def frozen(self, id: UnitId) -> bool:
        """Does a unit, or something that it is a part of, keep its parameters by choice?"""
        return any(
            one.parameters > 0 and one.trainable == 0 for one in (self.units[id], *self.above(id))
        )

    def outward(self, ids: Collection[UnitId]) -> dict[UnitId, UnitId | None]:
        """Add to holders of parameters the units all of whose holders are among them.

        Each is mapped to the outermost such unit that it is a part of; None: it is that one.
        """
        whole = [
            one
            for one in self.units.values()
            if one.trainable
            and (inside := [id for id in self.holders if contains(one, self.units[id])])
            and all(id in ids for id in inside)
        ]
        told: dict[UnitId, UnitId | None] = {}
        for one in sorted([*whole, *(self.units[id] for id in ids)], key=by_order):
            outer = [other for other in whole if contains(other, one)]
            told[one.id] = min(outer, key=lambda other: len(other.path)).id if outer else None
        return told

    @cached_property
    def ordered(self) -> list[Unit]:
        """The units that were called, in the order of their first call."""
        return sorted((one for one in self.units.values() if one.order >= 0), key=by_order)

    def before(self, id: UnitId) -> Unit | None:
        """Return the innermost unit that was called right before a unit."""
        unit = self.units[id]
        earlier = [
            one
            for one in self.ordered
            if one.order < unit.order and not contains(one, unit) and not contains(unit, one)
        ]
        if not earlier:
            return None
        last = earlier[-1]
        inside = [one for one in earlier if contains(last, one)]
        return inside[-1] if inside else last

    @cached_property
    def references(self) -> dict[int, float]:
        """The gradient that gradients are compared to, by step.

        It is the one at the network's output; where that is a sigmoid, a tanh or a softmax, the
        one before it, since a flat output of a solved problem is no fault of the layers below.
        """
        found = {step: one.output_grad_norm for step, one in self.steps.items()}
        for unit in self.units.values():
            if unit.feeds_output and unit.activation in _BOUNDED and (last := self.before(unit.id)):
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
        movers = [
            frozenset(step for step, moved in self.points(id, "moved") if moved > 0)
            for id in self.holders
        ]
        turns = [one for one in movers if one]
        return any(not one & other for one in turns for other in turns)

    @cached_property
    def loss_fell(self) -> bool | None:
        """Did the loss fall since the first step? None: it is not known."""
        if len(self.losses) < 2 or not all(math.isfinite(one) for one in self.losses):
            return None
        first = self.losses[0]
        last = median(self.losses[len(self.losses) // 2 :])
        return first - last >= self.thresholds.lr_high_fall * abs(first)


_PHASES = (
    ("forward", "act_bad_frac", ("act_max", "act_min")),
    ("backward", "out_grad_bad_frac", ("out_grad_max", "out_grad_norm")),
    ("weights", "param_grad_bad_frac", ("param_grad_norm",)),
)


def pairs(series: Series | None) -> Points:
    """Return a series as pairs of step and value."""
    return [] if series is None else list(zip(series.steps, series.values, strict=True))


def middle(values: list[float]) -> float | None:
    """Return the median of numbers; None: there is none."""
    finite = [one for one in values if math.isfinite(one)]
    return median(finite) if finite else None


def contains(outer: Unit, inner: Unit) -> bool:
    """Is a unit a part of another one?"""
    if outer.node != inner.node or outer.id == inner.id:
        return False
    return not outer.path or inner.path.startswith((f"{outer.path}.", f"{outer.path}["))


def by_order(unit: Unit) -> tuple[bool, int]:
    """Sort units by their first call, those without one last."""
    return unit.order < 0, unit.order


def since(points: Points, low: float, high: float = math.inf) -> int:
    """Return the first step of the last stretch whose values are all from `low` to `high`."""
    stretch = list(takewhile(lambda one: low <= one[1] <= high, reversed(points)))
    if stretch:
        return stretch[-1][0]
    return next((step for step, value in points if low <= value <= high), points[-1][0])

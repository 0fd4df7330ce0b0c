"""`Elsewhere`: puts what is measured in other processes together with what is measured here.

An `Outpost` there measures the modules. This process, home, trains: it counts the steps, sees the
loss and the network's output, and holds the one set of numbers that a verdict is taken of.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from soma.audit._measure._tensors import numeric_tensors
from soma.audit._origin._operations import worst
from soma.audit._processes._joint_recorder import JointRecorder
from soma.audit._scope import ChannelConfig, InsideByNode
from soma.audit._spots import Spot
from soma.core import NodeId
from soma.health import Measurements, Origin, Series, Step, Unit


class Elsewhere:
    """What an audit knows of the modules that are in other processes, and takes from there."""

    def __init__(
        self, recorder: JointRecorder, inside: InsideByNode, channels: ChannelConfig | None
    ) -> None:
        self.inside = inside
        self.channels = channels
        self.input: object = None  # of the forward under way
        self._recorder = recorder
        self._spots: dict[NodeId, Spot] = {}
        self._units: dict[NodeId, tuple[Unit, ...]] = {}
        self._lost: dict[NodeId, str] = {}
        self._claims: list[Origin] = []  # the origins that outposts found, of which one is believed
        self._is_bad_input: bool | None = None  # of the first step with bad numbers

    def begin(self) -> None:
        """Have the recorder wait for outposts, and put their origins and units beside its own."""
        self._recorder.is_joint = True
        self._recorder.replays.found = self._claims
        self._recorder.settler.described = self._describe

    def add(self, spot: Spot) -> None:
        """Take the spot of a node whose module is elsewhere."""
        self._spots[spot.node] = spot

    # What outposts tell while a step is under way

    def turn(self) -> tuple[int, bool, int] | None:
        """Return the step under way, whether it is measured whole, and one in how many is."""
        recorder = self._recorder
        if recorder.is_deaf:
            return None
        recorder.guarded(None, recorder.pass_begins)
        step = recorder.step
        return None if step is None else (step.number, step.whole, recorder.budget.every)

    def met(self, node: NodeId, units: Sequence[Unit]) -> None:
        """Take the units that an outpost watches of a node, itself first."""
        spot = self._spots.get(node)
        if spot is not None:
            self._units[node] = tuple(units)
            spot.elsewhere, spot.inner_units = units[0], len(units) - 1
            self._describe()

    def heard(self, norm: float, norm_at_step: float, seconds: float) -> None:
        """Take the norm of the gradients elsewhere, and the seconds that measuring took there.

        Look for the origin of a norm that is not finite.
        """
        recorder = self._recorder
        step = recorder.step
        recorder.spent += seconds
        if step is not None:
            step.elsewhere = norm, norm_at_step
        if not math.isfinite(norm) and not self._claims:
            recorder.guarded(None, recorder.look_for_origin)
        if self._is_bad_input is None and (self._claims or not math.isfinite(norm)):
            came = worst(one for _, one in numeric_tensors(self.input))
            self._is_bad_input = came is not None

    def dropped(self) -> None:
        """End a step whose gradients were cleared, and used by no optimizer."""
        self._recorder.guarded(None, self._recorder.step_dropped)

    # What outposts have measured

    def take(self, measured: Measurements) -> None:
        """Put numbers that were measured elsewhere in, over those of the same steps here."""
        self._recorder.read()  # these steps first: what was measured elsewhere goes over them
        mine = self._recorder.measurements
        for node in self._spots:
            found = tuple(one for one in measured.units.values() if one.node == node)
            if found:
                self._units[node] = found
                self._spots[node].elsewhere = found[0]
        for unit, by_name in measured.series.items():
            here = mine.series.setdefault(unit, {})
            for name, series in by_name.items():
                here[name] = _joined(here.get(name), series)
        for unit, snapshots in measured.channels.items():
            mine.channels[unit] = [*mine.channels.get(unit, ()), *snapshots]
        for unit, by_pair in measured.similarity.items():
            pairs = mine.similarity.setdefault(unit, {})
            for pair, series in by_pair.items():
                pairs[pair] = _joined(pairs.get(pair), series)
        mine.correlation |= measured.correlation
        mine.correlation_channels |= measured.correlation_channels
        mine.notes += [one for one in measured.notes if one not in mine.notes]
        self._claims += [one for one in measured.origins if one not in self._claims]
        self._choose_origin()
        self._describe()

    def lost(self, nodes: Sequence[NodeId], where: str) -> None:
        """Mark the nodes of a process that is gone, with what it had not told."""
        measured = self._recorder.measurements
        for node in nodes:
            if node in self._spots and "grads" not in measured.series.get(node, {}):
                self._lost[node] = f"{where} was lost"
        note = f"{where} was lost, and with it what it had measured since it was last asked"
        if note not in measured.notes:
            measured.notes.append(note)
        self._describe()

    def _describe(self) -> None:
        """Bring the units of what is elsewhere up to date, in the order of the whole graph."""
        known = self._recorder.measurements.units
        for node, units in self._units.items():
            spot = self._spots[node]
            inner = sorted(units[1:], key=lambda one: one.order if one.order >= 0 else math.inf)
            first = spot.order - spot.inner_units
            orders = {one.id: first + at for at, one in enumerate(inner) if one.order >= 0}
            for unit in units:
                is_node = not unit.path
                known[unit.id] = replace(
                    unit,
                    order=spot.order if is_node else orders.get(unit.id, -1),
                    feeds_output=spot.feeds_output and (is_node or unit.feeds_output),
                    unobserved=self._lost.get(node, unit.unobserved),
                )

    def _choose_origin(self) -> None:
        """Choose one origin of all claims: an outpost sees only its own modules, and no loss."""
        measured = self._recorder.measurements
        bad = (one for one in measured.steps if not one.skipped and not _is_fine(one))
        step = next(bad, None)
        if step is None or measured.origins:
            return
        claims = [one for one in self._claims if one.step == step.step]
        measured.origins += [*self._born(claims), *self._outside(step, claims)][:1]

    def _born(self, claims: Sequence[Origin]) -> Iterator[Origin]:
        units = self._recorder.measurements.units
        inside = ((units[one.unit].order, one) for one in claims if one.unit in units)
        known = [one for _, one in sorted(inside, key=lambda pair: pair[0])]
        yield from (one for one in known if one.phase != "backward")
        yield from (one for one in reversed(known) if one.phase == "backward")

    def _outside(self, step: Step, claims: Sequence[Origin]) -> Iterator[Origin]:
        if self._is_bad_input:
            yield from (one for one in claims if one.phase == "data")
        if self._is_output_bad(step.step):
            return
        for what, value in (("gradient", step.output_grad_norm), ("loss", step.loss or 0.0)):
            if not math.isfinite(value):
                yield Origin(
                    step=step.step,
                    unit=None,
                    operation="",
                    phase="loss",
                    value="nan" if math.isnan(value) else "inf",
                    detail=f"the network's output is finite, its {what} is not",
                )

    def _is_output_bad(self, step: int) -> bool:
        measured = self._recorder.measurements
        shares = (
            measured.series[id].get("act_bad_frac", Series())
            for id, unit in measured.units.items()
            if unit.feeds_output and id in measured.series
        )
        found = (dict(zip(one.steps, one.values, strict=True)) for one in shares)
        return any(one.get(step, 0.0) > 0 for one in found)


def _is_fine(step: Step) -> bool:
    return math.isfinite(step.grad_norm) and math.isfinite(step.loss or 0.0)


def _joined(here: Series | None, there: Series) -> Series:
    """Return a series with what was measured elsewhere, which counts where both have a step."""
    if here is None or not here.steps:
        return there
    if not there.steps:
        return here
    if here.steps[-1] < there.steps[0]:
        return Series(steps=here.steps + there.steps, values=here.values + there.values)
    both = dict(zip(here.steps, here.values, strict=True))
    both |= zip(there.steps, there.values, strict=True)
    steps = sorted(both)
    return Series(steps=steps, values=[both[step] for step in steps])

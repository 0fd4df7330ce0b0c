"""DEAD and DEAD_CHANNELS: units of an activation that never fire."""

from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._family import contains
from soma.health._finding import Finding
from soma.health._numbers import Unit, UnitId
from soma.health._words import named, number, percent, ranges, several

_MEASURED = (
    "For each channel after an activation its largest absolute output, over the root mean square "
    "of what the activation was given, over all samples of the last half of the measured steps."
)
_HELPS = (
    "`nn.LeakyReLU(0.01)` or `nn.GELU()` in place of `nn.ReLU()`",
    "biases that start at 0 or a little above, weights by `nn.init.kaiming_normal_`",
    "a smaller learning rate: one step that is too large can switch units off for good",
    "a BatchNorm or LayerNorm before the activation",
)
_SOURCE = "Lu et al. 2019, Dying ReLU and initialization, arXiv:1903.06733."

EXPLANATIONS = (
    Explanation(
        flag="DEAD",
        title="nothing comes out of it",
        measured=_MEASURED,
        rule="All channels stay at or below `dead`, while the activation is given something. "
        "Channels that rest in some steps only are not dead.",
        thresholds=("dead", "dead_samples"),
        source=_SOURCE,
        helps=_HELPS,
    ),
    Explanation(
        flag="DEAD_CHANNELS",
        title="some of its channels never fire",
        measured=_MEASURED,
        rule="Some channels, whose number stands in brackets, stay at or below `dead`.",
        thresholds=("dead", "dead_samples"),
        source=_SOURCE,
        helps=_HELPS,
    ),
)


def dead(facts: Facts) -> list[Finding]:
    """Find activations of which some or all channels never fire."""
    silent = {
        unit.id: channels
        for unit in facts.family.ordered
        if unit.activation
        and not facts.frozen(unit.id)
        and (channels := dead_channels(facts, unit.id))
    }
    return [
        _finding(facts, facts.units[id], channels, _inside(facts, id, silent))
        for id, channels in silent.items()
    ]


def dead_channels(facts: Facts, id: UnitId) -> tuple[int, ...]:
    """Return the channels of an activation that never fired in the window."""
    seen = [one for one in facts.snapshots(id) if one.input_rms is not None and one.input_rms > 0]
    samples = sum(one.samples for one in seen)
    if not seen or 0 < samples < facts.thresholds.dead_samples:
        return ()
    limit = facts.thresholds.dead
    silent = tuple(
        channel
        for channel in range(min(len(one.largest) for one in seen))
        if all(one.largest[channel] <= limit * (one.input_rms or 0.0) for one in seen)
    )
    others = set(range(len(seen[-1].largest))) - set(silent)
    varies = any(
        one.deviation[other] > limit * one.largest[other] for one in seen for other in others
    )
    return silent if varies or not others else ()  # given a constant, no channel can tell


def _inside(facts: Facts, id: UnitId, silent: dict[UnitId, tuple[int, ...]]) -> UnitId | None:
    """Return the unit inside that has the same channels dead, and tells of them."""
    unit = facts.units[id]
    return next(
        (
            other
            for other in silent
            if contains(unit, facts.units[other]) and silent[other] == silent[id]
        ),
        None,
    )


def _since(facts: Facts, id: UnitId, channels: tuple[int, ...]) -> int:
    """Return the step from which on none of the channels fired."""
    seen = [one for one in facts.measured.channels[id] if one.step in facts.steps]
    start = seen[-1].step
    for one in reversed(seen):
        limit = facts.thresholds.dead * (one.input_rms or 0.0)
        if any(one.largest[channel] > limit for channel in channels):
            break
        start = one.step
    return start


def _finding(facts: Facts, unit: Unit, channels: tuple[int, ...], inside: UnitId | None) -> Finding:
    seen = facts.snapshots(unit.id)
    count = len(seen[-1].largest)
    every = len(channels) == count
    size = number(seen[-1].input_rms or 0.0)
    steps = several(len(seen), "measured step")
    return Finding(
        flag="DEAD" if every else f"DEAD_CHANNELS({len(channels)})",
        unit=unit.id,
        since=_since(facts, unit.id, channels),
        certainty="certain" if len(seen) > 2 else "likely",
        why=(
            f"all {several(count, 'channel')} stay at 0 over {steps}, though the activation is "
            f"given values of size {size}"
            if every
            else f"{len(channels)} of {several(count, 'channel')} ({ranges(channels)}) stay at 0 "
            f"over {steps}, though the activation is given values of size {size}"
        ),
        meaning=(
            "no gradient passes it, so nothing above it learns through it, and what is below "
            "sees a constant"
            if every
            else f"the weights of {percent(len(channels) / count)} of it are idle and get no "
            "gradient, and do not come back by themselves"
        ),
        help=f"use `nn.LeakyReLU(0.01)` or `nn.GELU()` in {named(unit)}, or start its biases at 0; "
        "if they died during the run, lower the learning rate",
        numbers={"dead": float(len(channels)), "channels": float(count)},
        channels=channels,
        cause=inside,
    )

"""IGNORED_CHANNELS: channels that work, and that the loss does not look at."""

from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._family import contains
from soma.health._finding import Finding
from soma.health._measurements import ChannelSnapshot, Unit, UnitId
from soma.health._words import named, percent, ranges, several
from soma.health.rules._dead import quiet_channels

_STILL = 1e-6  # spread of a channel over its size below which it is a constant

EXPLANATION = Explanation(
    flag="IGNORED_CHANNELS",
    title="the loss ignores some of its channels",
    measured="For each channel the sum of its absolute gradients over the last half of the "
    "measured steps, and the spread and size of its output.",
    rule="The channel varies and fires, and its gradients are at or below `ignored` times those "
    "of the module's largest channel; their number stands in brackets. Channels that an "
    "activation right after them silences do not belong to this finding.",
    thresholds=("ignored",),
    source="Molchanov et al. 2017, arXiv:1611.06440 (gradient times activation as importance).",
    helps=(
        "if the slice that drops them is meant, make the module narrower",
        "if not, look for a slice, a mask, an index or a factor of 0 after the module",
    ),
)


def ignored(facts: Facts) -> list[Finding]:
    """Find channels that vary and get (almost) no gradient."""
    found = {
        unit.id: channels
        for unit in facts.family.ordered
        if not facts.frozen(unit.id) and (channels := _channels(facts, unit))
    }
    return [
        _finding(facts, facts.units[id], channels, _inside(facts, id, found))
        for id, channels in found.items()
    ]


def _channels(facts: Facts, unit: Unit) -> tuple[int, ...]:
    seen = _seen(facts, unit)
    if not seen or len({len(one.gradient) for one in seen}) > 1:
        return ()
    if not any(any(one.gradient) for one in seen) and len(facts.steps) < facts.thresholds.patience:
        return ()
    count = len(seen[0].gradient)
    sums = [sum(one.gradient[channel] for one in seen) for channel in range(count)]
    limit = facts.thresholds.ignored * max(sums)
    silent = tuple(
        channel
        for channel, total in enumerate(sums)
        if total <= limit and any(_lives(one, channel) for one in seen)
    )
    silenced = _silenced(facts, unit) if silent else frozenset()
    return tuple(one for one in silent if one not in silenced)


def _seen(facts: Facts, unit: Unit) -> list[ChannelSnapshot]:
    """Return what was seen in steps whose loss still had a gradient."""
    return [
        one for one in facts.snapshots(unit.id) if one.gradient and one.step in facts.references
    ]


def _lives(one: ChannelSnapshot, channel: int) -> bool:
    """Does a channel fire, and not always the same?"""
    largest = one.largest[channel]
    return largest > _STILL * max(one.largest) and one.deviation[channel] > _STILL * largest


def _silenced(facts: Facts, unit: Unit) -> frozenset[int]:
    """Return the channels that the next activation keeps at 0, if all before it keep them apart.

    Those that it lets fire in too few steps to say more are among them.
    """
    for one in facts.family.after(unit.id):
        apart = one.parameters == 0 or "norm" in one.class_name.lower()
        if one.channels != unit.channels or not apart:
            break
        if one.activation:
            few = int(facts.thresholds.patience) - 1
            return frozenset(quiet_channels(facts, one.id, few))
    return frozenset()


def _inside(facts: Facts, id: UnitId, found: dict[UnitId, tuple[int, ...]]) -> UnitId | None:
    unit = facts.units[id]
    same = (o for o in found if contains(unit, facts.units[o]) and found[o] == found[id])
    return next(same, None)


def _finding(facts: Facts, unit: Unit, channels: tuple[int, ...], inside: UnitId | None) -> Finding:
    seen = _seen(facts, unit)
    count = len(seen[0].gradient)
    first = next(one for one in facts.measured.channels[unit.id] if one.gradient)
    every = len(channels) == count
    which = "all" if every else f"{len(channels)} of"
    where = "" if every else f" ({ranges(channels)})"
    return Finding(
        flag=f"IGNORED_CHANNELS({len(channels)})",
        unit=unit.id,
        since=first.step,
        certainty="certain" if len(seen) > 2 else "likely",
        why=f"{which} {several(count, 'channel')}{where} vary from sample to sample and get "
        + (
            "a gradient of exactly 0"
            if every
            else "less than a millionth of the gradient of the strongest channel"
        ),
        meaning=f"the loss does not depend on {percent(len(channels) / count)} of what it "
        "computes, and the weights for that do not learn",
        help=f"look for a slice, an index or a factor of 0 behind {named(unit)}; if it is meant, "
        f"make the module {count - len(channels)} channels wide"
        if not every
        else f"look for what multiplies the output of {named(unit)} by 0 behind it; if it is "
        "meant, take the module out",
        numbers={"ignored": float(len(channels)), "channels": float(count)},
        channels=channels,
        cause=inside,
    )

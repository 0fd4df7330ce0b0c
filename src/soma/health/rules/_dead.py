"""DEAD and DEAD_CHANNELS: units of an activation that never fire."""

import math
from statistics import median

from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._family import contains
from soma.health._finding import Finding
from soma.health._measurements import ChannelSnapshot, Unit, UnitId
from soma.health._words import named, number, percent, ranges, several

_NEAR = 0.25  # of how much others vary beside their size, from which on a silent channel is near
_SAME = 1e-3  # difference of two sizes of the same values
# What these return is of size 1, whatever they are given.
_CAPPED = {
    "celu", "elu", "hardsigmoid", "hardtanh", "relu6", "selu", "sigmoid", "softmax", "softsign",
    "tanh",
}  # fmt: skip

_MEASURED = (
    "For each channel after an activation its largest absolute output, over the root mean square "
    "of what the activation was given (over 1 at most, where an activation has a ceiling), over "
    "all samples of the last half of the measured steps."
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
        "Channels that rest in some steps only are not dead. A softmax is not judged: its channels "
        "are there to be chosen from, and masked ones never are.",
        thresholds=("dead", "dead_samples"),
        source=_SOURCE,
        helps=_HELPS,
    ),
    Explanation(
        flag="DEAD_CHANNELS",
        title="some of its channels never fire",
        measured=_MEASURED,
        rule="Some channels, whose number stands in brackets, stay at or below `dead`, and are not "
        "near to firing: what goes into them varies less than 0.25 times as much, beside its size, "
        "as what goes into those that fire, where that is audited too. A quiet channel that is "
        "near comes back as the layers before it learn.",
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
        if unit.activation not in (None, "softmax")
        and not facts.frozen(unit.id)
        and (channels := dead_channels(facts, unit.id))
    }
    return [
        _finding(facts, facts.units[id], channels, _inside(facts, id, silent))
        for id, channels in silent.items()
    ]


def dead_channels(facts: Facts, id: UnitId) -> tuple[int, ...]:
    """Return the channels of an activation that never fired in the window and are far from it."""
    silent = quiet_channels(facts, id)
    near = _near(facts, id, silent) if silent else frozenset()
    return tuple(channel for channel in silent if channel not in near)


def quiet_channels(facts: Facts, id: UnitId, fired: int = 0) -> tuple[int, ...]:
    """Return the channels of an activation that fired in so few steps of the window, or fewer."""
    seen = [one for one in facts.snapshots(id) if one.input_rms is not None and one.input_rms > 0]
    samples = sum(one.samples for one in seen)
    if not seen or 0 < samples < facts.thresholds.dead_samples:
        return ()
    limit = facts.thresholds.dead
    silent = tuple(
        channel
        for channel in range(min(len(one.largest) for one in seen))
        if sum(one.largest[channel] > _line(facts, id, one) for one in seen) <= fired
    )
    others = set(range(len(seen[-1].largest))) - set(silent)
    varies = any(
        one.deviation[other] > limit * one.largest[other] for one in seen for other in others
    )
    return silent if varies or not others else ()  # given a constant, no channel can tell


def _line(facts: Facts, id: UnitId, one: ChannelSnapshot) -> float:
    """Return the largest output at which a channel is silent, beside what it is given."""
    given = one.input_rms or 0.0
    return facts.thresholds.dead * (
        min(given, 1.0) if facts.units[id].activation in _CAPPED else given
    )


def _near(facts: Facts, id: UnitId, silent: tuple[int, ...]) -> frozenset[int]:
    """Return the silent channels that are given values not far from those at which they fire.

    What goes into a dead unit hardly varies beside its size; that of a quiet one does, like that
    of those that fire, and as the layers before it learn it comes back.
    """
    given = _given(facts, id)
    if given is None:
        return frozenset()
    varies = [
        median(one.deviation[at] / (one.largest[at] or math.inf) for one in given)
        for at in range(len(given[0].largest))
    ]
    firing = [value for at, value in enumerate(varies) if at not in silent]
    if not firing:
        return frozenset()
    limit = _NEAR * median(firing)
    return frozenset(at for at in silent if varies[at] >= limit)


def _given(facts: Facts, id: UnitId) -> list[ChannelSnapshot] | None:
    """Return what was seen of the values that an activation is given; None: they are not known."""
    unit = facts.units[id]
    inner = [one for one in facts.family.inside(unit.node, unit.path) if one.activation]
    innermost = [one for one in inner if not any(contains(one, other) for other in inner)]
    before = facts.family.before(innermost[-1].id) if innermost else None
    if before is None:
        return None
    sizes = dict(facts.points(before.id, "act_norm"))
    seen = {one.step: one for one in facts.snapshots(before.id)}
    found = []
    for one in facts.snapshots(id):
        given = seen.get(one.step)
        if given is None or len(given.largest) != len(one.largest) or not one.samples:
            return None
        size = sizes.get(one.step, 0.0) / math.sqrt(one.samples * len(one.largest))
        if not math.isclose(size, one.input_rms or 0.0, rel_tol=_SAME):
            return None  # a sum, say, is made between the two
        found.append(given)
    return found or None


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
        limit = _line(facts, id, one)
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
    since = _since(facts, unit.id, channels)
    return Finding(
        flag="DEAD" if every else f"DEAD_CHANNELS({len(channels)})",
        unit=unit.id,
        since=since,
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
        help=f"take `nn.LeakyReLU(0.01)` or `nn.GELU()` {_place(unit)}; "
        + (
            "it was so from the start, so look at the initial biases and the scale of the inputs"
            if since <= min(facts.steps)
            else "it died during the run, so lower the learning rate or warm it up"
        ),
        numbers={"dead": float(len(channels)), "channels": float(count)},
        channels=channels,
        cause=inside,
    )


def _place(unit: Unit) -> str:
    """Say where an activation stands: it is the unit itself, or the last thing in it."""
    is_activation = not unit.children and not unit.parameters
    return f"in place of {named(unit)}" if is_activation else f"at the end of {named(unit)}"

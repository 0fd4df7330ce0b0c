"""Says of a label whether the evidence bears it out, and with which numbers."""

import math
from statistics import median
from typing import NamedTuple

import torch

from tests.detection import proofs
from tests.detection.evidence import Evidence, unit_names
from tests.detection.run import Label


class Claim(NamedTuple):
    """Whether something is so, and the numbers that say so."""

    holds: bool
    numbers: object


def claim(evidence: Evidence, label: Label) -> Claim:
    """Measure what a label claims."""
    return _CLAIMS[label.flag](evidence, label)


def _vanishing(evidence: Evidence, label: Label) -> Claim:
    if label.unit not in unit_names(evidence.trainee):
        return Claim(False, "not there")
    ratio = proofs.gradient_ratio(evidence, label.unit)
    return Claim(ratio < 2e-3, ratio)


def _exploding(evidence: Evidence, label: Label) -> Claim:
    ratio = proofs.gradient_ratio(evidence, label.unit)
    jump = proofs.gradient_jump(evidence, label.unit)
    return Claim(ratio > 1e3 or jump > 1e3, (ratio, jump))


def _not_finite(evidence: Evidence, label: Label) -> Claim:
    """It is the first place: what went in was finite, and all before was."""
    bad = proofs.first_bad(evidence, label.unit)
    if bad is None:
        return Claim(False, None)
    step, where, what = bad
    begins = where == "backward" or proofs.inputs_are_finite(evidence, label.unit, step)
    in_data = not bool(evidence.trainee.x.isfinite().all())
    right = (step, what) == (label.step, label.flag)
    return Claim(right and (begins or in_data), bad)


def _silent(evidence: Evidence, label: Label) -> Claim:
    channels = proofs.silent(evidence, label.unit)
    everything = len(channels) == _width(evidence, label.unit)
    if label.flag == "DEAD":
        return Claim(everything, len(channels))
    return Claim(bool(channels) and label.count in (None, len(channels)), sorted(channels))


def _width(evidence: Evidence, unit: str) -> int:
    seen = next(one[unit] for one in evidence.looks if unit in one)
    return proofs.samples(seen.outputs).shape[1]


def _ignored(evidence: Evidence, label: Label) -> Claim:
    """The loss doesn't hear of the channels, not even if they are turned into noise."""
    channels = proofs.ignored(evidence, label.unit)
    if not channels or label.count not in (None, len(channels)):
        return Claim(False, sorted(channels))
    heard = proofs.deafness(evidence, label.unit, channels)
    return Claim(heard < 1e-5, (sorted(channels), heard))


def _saturated(evidence: Evidence, label: Label) -> Claim:
    share = proofs.flat(evidence, label.unit)
    return Claim(share > 0.7, share)


def _leakage(evidence: Evidence, label: Label) -> Claim:
    alike = proofs.likeness(evidence, label.unit)
    return Claim(alike > 0.95, alike)


def _frozen(evidence: Evidence, label: Label) -> Claim:
    """No bit changed, though gradients came, and others moved."""
    owned, moved = proofs.owned(evidence, label.unit), proofs.ever_moved(evidence, label.unit)
    others = [name for name in evidence.changed if name not in owned]
    live = any(any(evidence.changed[name]) for name in others)
    pushed = proofs.ever_pushed(evidence, label.unit)
    return Claim(bool(owned) and not moved and live and bool(pushed), (sorted(moved), len(pushed)))


def _no_grad(evidence: Evidence, label: Label) -> Claim:
    """It was called, and no parameter of it is in the graph of any loss."""
    pushed = proofs.ever_pushed(evidence, label.unit)
    return Claim(label.unit in evidence.called and not pushed, sorted(pushed))


def _unused(evidence: Evidence, label: Label) -> Claim:
    pushed = proofs.ever_pushed(evidence, label.unit)
    called = [one for one in evidence.called if (one + ".").startswith(label.unit + ".")]
    return Claim(not called and not pushed, called)


def _lr_high(evidence: Evidence, label: Label) -> Claim:
    move = proofs.move(evidence, label.unit, 8)
    return Claim(move > 0.1 and not proofs.fell(evidence), (move, proofs.fell(evidence)))


def _lr_low(evidence: Evidence, label: Label) -> Claim:
    """Hardly any move, though its gradient is as large as that of others."""
    move = proofs.move(evidence, label.unit)
    own = _strength(evidence, proofs.owned(evidence, label.unit))
    every = [_strength(evidence, [name]) for name in evidence.sizes]
    return Claim(move < 1e-6 and own >= 1e-3 * median(every), (move, own / median(every)))


def _strength(evidence: Evidence, names: list[str]) -> float:
    return max(
        sum(float(fresh[name].norm()) ** 2 for name in names if name in fresh) ** 0.5
        for fresh in evidence.fresh
    )


def _collapse(evidence: Evidence, label: Label) -> Claim:
    """Samples differ less: a mean that grows beside a spread that stays is no collapse."""
    variety, spread = (
        proofs.variety(evidence, label.unit),
        proofs.spread(evidence, label.unit),
    )
    last = max(len(variety) // 4, 1)
    shares = median(variety[:2]), median(variety[-last:])
    spreads = median(spread[:2]), median(spread[-last:])
    left = spreads[1] / spreads[0]
    falls = (shares[0] > 0.1 and shares[1] < 1e-2 and left < 0.5) or left < 0.1
    return Claim(falls and math.isfinite(evidence.losses[-1]), (shares, spreads))


def _stale(evidence: Evidence, label: Label) -> Claim:
    """A step used the gradients of all steps so far, one added to the other."""
    apart = proofs.leftover(evidence, label.unit)
    sums: dict[str, torch.Tensor] = {}
    added = True
    for fresh, used in zip(evidence.fresh, evidence.used, strict=True):
        for name in proofs.owned(evidence, label.unit):
            if name in fresh:
                sums[name] = sums.get(name, torch.zeros_like(fresh[name])) + fresh[name]
                if name in used:
                    scale = float(sums[name].abs().max())
                    added &= torch.allclose(used[name], sums[name], rtol=1e-2, atol=1e-3 * scale)
    return Claim(apart > 0.1 and added, (apart, added))


_CLAIMS = {
    "VANISHING": _vanishing, "EXPLODING": _exploding, "NAN": _not_finite, "INF": _not_finite,
    "DEAD": _silent, "DEAD_CHANNELS": _silent, "IGNORED_CHANNELS": _ignored,
    "SATURATED": _saturated, "LEAKAGE": _leakage, "FROZEN": _frozen, "NO_GRAD": _no_grad,
    "UNUSED": _unused, "LR_HIGH": _lr_high, "LR_LOW": _lr_low, "COLLAPSE": _collapse,
    "STALE_GRAD": _stale,
}  # fmt: skip

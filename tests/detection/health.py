"""What is so of a healthy run: it learns, all of it takes part, and no fault is measured."""

import math
from collections.abc import Iterator
from statistics import median

import torch
from torch import nn

from tests.detection import proofs
from tests.detection.drive import is_falling
from tests.detection.evidence import Evidence, unit_names

_RELU = (nn.ReLU, nn.ReLU6, nn.GELU, nn.Hardswish)
_FLAT = (nn.Tanh, nn.Sigmoid, nn.Softmax, nn.Hardtanh)


def complaints(evidence: Evidence) -> Iterator[str]:
    """Say what speaks against the health of a run."""
    yield from _learning(evidence)
    yield from _parameters(evidence)
    yield from _units(evidence)


def _learning(evidence: Evidence) -> Iterator[str]:
    run, losses = evidence.trainee.run, evidence.losses
    if not all(map(math.isfinite, losses)):
        yield "the loss is not finite"
    if run.converged:
        if max(losses) > 1.5 * losses[0] or losses[0] > 1e-6:
            yield f"it is not where it ends: {losses[0]:.3g} to {max(losses):.3g}"
    elif run.score is not None:
        if not is_falling([evidence.scores[0], evidence.scores[0], evidence.scores[1]]):
            yield f"its score is {evidence.scores}"
    elif not is_falling(losses):
        yield f"its loss goes from {losses[0]:.4g} to {losses[-1]:.4g}"
    for step, (fresh, used) in enumerate(zip(evidence.fresh, evidence.used, strict=True)):
        for name, one in fresh.items():
            slack = 1e-4 * float(one.abs().max())
            if name in used and not torch.allclose(one, used[name], rtol=1e-3, atol=slack):
                yield f"step {step} uses another gradient of {name}"
                return


def _parameters(evidence: Evidence) -> Iterator[str]:
    strongest: dict[str, float] = {}
    for index, fresh in enumerate(evidence.fresh):
        shares = {
            name: float(one.norm()) * evidence.shifts[name][index] for name, one in fresh.items()
        }
        top = max(shares.values(), default=0.0)
        for name, share in shares.items():
            strongest[name] = max(strongest.get(name, 0.0), share / top if top else 0.0)
    for name in evidence.sizes:
        if name in evidence.trainee.run.idle:
            continue
        if not any(evidence.changed[name]):
            yield f"{name} never moves"
        if strongest.get(name, 0.0) < 1e-5:
            yield f"{name} gets a gradient of {strongest.get(name, 0.0):.2g} of the largest"


def _units(evidence: Evidence) -> Iterator[str]:
    called = set().union(*evidence.looks)
    for unit, module in unit_names(evidence.trainee).items():
        holds = any(one.requires_grad for one in module.parameters())
        if unit not in called:
            used = holds and proofs.ever_pushed(evidence, unit)
            if holds and not used:
                yield f"{unit} is never called"
            continue
        if bad := proofs.first_bad(evidence, unit):
            if not _masks(evidence, unit):
                yield f"{unit} is not finite at {bad}"
            continue
        ratio, product = proofs.gradient_ratio(evidence, unit), proofs.product_ratio(evidence, unit)
        low = max(ratio, product) < 2e-3 and not proofs.has_opened(evidence, unit)
        gives = any(seen[unit].outputs for seen in evidence.looks if unit in seen)  # not a loss
        if holds and gives and (low or min(ratio, product) > 1e3):
            yield f"{unit} has {ratio:.3g} of the gradient at the output"
        if isinstance(module, _RELU) and (silent := proofs.silent(evidence, unit)):
            yield f"{unit} has silent channels {silent}"
        if (holds or isinstance(module, _RELU)) and (ignored := proofs.ignored(evidence, unit)):
            yield f"{unit} has ignored channels {ignored}"
        if isinstance(module, _FLAT) and (flat := proofs.flat(evidence, unit)) > 0.7:
            if _chose(evidence, unit):
                continue
            yield f"{unit} is flat in {flat:.0%}"
        last = unit in evidence.trainee.nodes or unit.endswith("/out")
        if holds and not last and (variety := proofs.variety(evidence, unit)):
            spread = proofs.spread(evidence, unit)
            gone = median(spread[-5:]) < 0.5 * spread[0]
            if variety[0] > 0.1 and median(variety[-5:]) < 1e-2 and gone:
                yield f"{unit} collapses from {variety[0]:.3g} to {variety[-1]:.3g}"
        learns = proofs.fell(evidence) or evidence.trainee.run.score is not None  # which falls
        if holds and (move := proofs.move(evidence, unit, 8)) > 0.1 and not learns:
            yield f"{unit} moves by {move:.2g} a step and the loss does not fall"
        done = evidence.trainee.run.converged or evidence.losses[-1] < 1e-6 * evidence.losses[0]
        if holds and not done and (move := proofs.move(evidence, unit)) < 1e-6:
            yield f"{unit} moves by {move:.2g} a step"


def _masks(evidence: Evidence, unit: str) -> bool:
    """Is what is not finite inf in each step, with finite gradients here and in the weights?"""
    seen = [one[unit] for one in evidence.looks if unit in one]
    outputs = [tensor for one in seen for tensor in one.outputs]
    gradients = [tensor for one in seen for tensor in one.gradients]
    gradients += [tensor for fresh in evidence.fresh for tensor in fresh.values()]
    chosen = all(bool(one.isinf().any()) and not bool(one.isnan().any()) for one in outputs)
    return chosen and all(bool(one.isfinite().all()) for one in gradients)


def _chose(evidence: Evidence, unit: str) -> bool:
    """Did it become flat only while the loss went?"""
    first = proofs.flat(evidence, unit, range(5))
    return first <= 0.7 and evidence.losses[-1] < 0.05 * evidence.losses[0]

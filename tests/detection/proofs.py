"""What each label claims, as a statement about hand-made measurements.

Each function returns a number (or a set of channels) from the evidence; `holds` says when it is
a fault. They follow the conventions of the flags, not the code of any audit.
"""

import math
from collections.abc import Iterable
from statistics import median

import torch
from torch import Tensor, nn

from tests.detection.evidence import Evidence, Seen, unit_names

_BENT = (nn.ReLU, nn.GELU, nn.ReLU6, nn.Hardtanh, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.SiLU,
         nn.ELU, nn.SELU, nn.Hardswish, nn.Hardsigmoid)  # fmt: skip


def late(evidence: Evidence) -> list[int]:
    """Return the looks of the last half of the run."""
    return list(range(len(evidence.looks) // 2, len(evidence.looks)))


def gradient_ratio(evidence: Evidence, unit: str) -> float:
    """The gradient at a unit's output over that at the output of its network, in the middle."""
    ratios = [
        seen[unit].norm / whole
        for seen in (evidence.looks[one] for one in late(evidence))
        if unit in seen and math.isfinite(whole := _at_output(evidence, seen)) and whole > 0
    ]
    finite = [one for one in ratios if math.isfinite(one)]
    return median(finite) if finite else math.nan


def product_ratio(evidence: Evidence, unit: str) -> float:
    """The same for gradient norm times output norm, which a norm further on leaves as it is."""
    ratios = []
    for seen in (evidence.looks[one] for one in late(evidence)):
        whole = max(
            (_product(seen[one]) for one in evidence.trainee.nodes if one in seen), default=0
        )
        if unit in seen and whole > 0:
            ratios.append(_product(seen[unit]) / whole)
    return median(ratios) if ratios else math.nan


def has_opened(evidence: Evidence, unit: str) -> bool:
    """Whether ten times as much of the gradient has come as at first, in the middle of steps."""
    ratios = [
        seen[unit].norm / whole
        for seen in evidence.looks
        if unit in seen and (whole := _at_output(evidence, seen)) > 0
    ]
    middles = [median(ratios[at : at + 5]) for at in range(len(ratios) - 4)]
    return bool(middles) and max(middles) > 10 * middles[0]


def _product(seen: Seen) -> float:
    return seen.norm * sum(float(one.double().square().sum()) for one in seen.outputs) ** 0.5


def _at_output(evidence: Evidence, seen: dict[str, Seen]) -> float:
    """The gradient at the network's output, or at the last layer where that is a loss."""
    if all(node in seen and not seen[node].outputs for node in evidence.trainee.nodes):
        return seen["net/out"].norm
    roots = [node for node in evidence.trainee.nodes if node in seen and seen[node].gradients]
    return seen[roots[-1]].norm if roots else 0.0


def gradient_jump(evidence: Evidence, unit: str) -> float:
    """How far the gradients of a step are above the middle of all earlier ones, at most."""
    norms = [
        sum(float(one.double().square().sum()) for one in fresh.values()) ** 0.5
        for fresh in evidence.fresh
    ]
    return max(
        norm / median(norms[:index])
        for index, norm in enumerate(norms)
        if index >= 2 and math.isfinite(norm) and median(norms[:index]) > 0
    )


def first_bad(evidence: Evidence, unit: str) -> tuple[int, str, str] | None:
    """The first step in which a unit's output or gradient is not finite, where, and as what."""
    for step, seen in zip(evidence.steps, evidence.looks, strict=True):
        if unit not in seen:
            continue
        for where, tensors in (("forward", seen[unit].outputs), ("backward", seen[unit].gradients)):
            for one in tensors:
                if one.isnan().any():
                    return step, where, "NAN"
                if one.isinf().any():
                    return step, where, "INF"
    return None


def inputs_are_finite(evidence: Evidence, unit: str, step: int) -> bool:
    """Is what a unit is given in a step finite?"""
    seen = evidence.looks[evidence.steps.index(step)][unit]
    return all(bool(one.isfinite().all()) for one in seen.inputs)


def rows(tensor: Tensor) -> Tensor:
    """Return a tensor as rows of channels."""
    axis = 1 if tensor.dim() == 4 else tensor.dim() - 1
    return tensor.movedim(axis, -1).reshape(-1, tensor.shape[axis]).double()


def samples(tensors: list[Tensor]) -> Tensor:
    """Return the first output of all calls as rows; a cell's state beside it is left out."""
    found = [rows(one) for one in tensors if one.dim() > 1]
    return torch.cat([one for one in found if one.shape[1] == found[0].shape[1]])


def silent(evidence: Evidence, unit: str) -> set[int]:
    """The channels of an activation that never fire in the last half of the run."""
    fires: Tensor | None = None
    for seen in (evidence.looks[one] for one in late(evidence)):
        if unit not in seen or not seen[unit].outputs:
            continue
        size = samples(seen[unit].inputs).square().mean().sqrt()
        largest = samples(seen[unit].outputs).abs().amax(0)
        now = largest > 1e-6 * size
        fires = now if fires is None else fires | now
    return set() if fires is None else set((~fires).nonzero()[:, 0].tolist())


def ignored(evidence: Evidence, unit: str) -> set[int]:
    """The channels that vary and fire, and whose gradients come to a millionth or less."""
    heard: Tensor | None = None
    varies: Tensor | None = None
    for seen in (evidence.looks[one] for one in late(evidence)):
        if unit not in seen or not seen[unit].outputs or not _at_output(evidence, seen):
            continue
        output = samples(seen[unit].outputs)
        here = output.std(0, correction=0) > 1e-6 * output.square().mean().sqrt()
        pull = (
            samples(seen[unit].gradients).abs().sum(0)
            if seen[unit].gradients
            else torch.zeros(output.shape[1], dtype=torch.double)
        )
        largest = pull.max()
        now = pull > 1e-6 * largest if largest > 0 else torch.zeros_like(pull, dtype=torch.bool)
        heard = now if heard is None else heard | now
        varies = here if varies is None else varies & here
    if heard is None or varies is None:
        return set()
    return set((varies & ~heard).nonzero()[:, 0].tolist())


def flat(evidence: Evidence, unit: str, looks: Iterable[int] | None = None) -> float:
    """The share of an activation's entries where its slope is below a twentieth of its peak."""
    module = unit_names(evidence.trainee)[unit]
    shares = [
        _flat(module, one)
        for seen in (evidence.looks[index] for index in looks or late(evidence))
        if unit in seen
        for one in seen[unit].inputs
    ]
    return median(shares) if shares else 0.0


def _flat(module: nn.Module, given: Tensor) -> float:
    if isinstance(module, nn.Softmax):
        p = given.softmax(-1)
        slope = (p * (1 - p)).amax(-1)
        rows_ = given.isfinite().sum(-1) > 1
        return float((slope[rows_] < 0.05 * 0.25).double().mean())
    given = given.clone().requires_grad_()
    slope = torch.autograd.grad(module(given).sum(), given)[0].abs()
    line = torch.linspace(-6, 6, 4_001).requires_grad_()
    peak = torch.autograd.grad(module(line).sum(), line)[0].abs().max()
    return float((slope < 0.05 * peak).double().mean())


def likeness(evidence: Evidence, unit: str) -> float:
    """The linear CKA of two groups of channels, without its bias, over up to 512 late samples."""
    groups = list(evidence.trainee.run.groups[unit].values())
    seen = [evidence.looks[one][unit] for one in late(evidence)]
    output = torch.cat([rows(one) for each in seen for one in each.outputs])[-512:]
    a, b = (output[:, list(one)] for one in groups)
    return _alike(a, b) / (_alike(a, a) * _alike(b, b)) ** 0.5


def _alike(a: Tensor, b: Tensor) -> float:
    """Song et al. 2012: the estimate of HSIC without bias."""
    n = len(a)
    k, m = a @ a.T, b @ b.T
    k.fill_diagonal_(0)
    m.fill_diagonal_(0)
    return float(
        (
            (k * m).sum()
            + k.sum() * m.sum() / ((n - 1) * (n - 2))
            - 2 * (k.sum(0) @ m.sum(0)) / (n - 2)
        )
        / (n * (n - 3))
    )


def owned(evidence: Evidence, unit: str) -> list[str]:
    """The names of a unit's trainable parameters, as the whole network has them."""
    module = unit_names(evidence.trainee)[unit]
    own = {id(one) for one in module.parameters()}
    return [
        name
        for name, one in evidence.trainee.net.named_parameters()
        if one.requires_grad and id(one) in own
    ]


def ever_moved(evidence: Evidence, unit: str) -> set[str]:
    """The unit's parameters of which a bit changed in some step."""
    return {one for one in owned(evidence, unit) if any(evidence.changed[one])}


def ever_pushed(evidence: Evidence, unit: str) -> set[str]:
    """The unit's parameters that a gradient ever reached."""
    return {name for name in owned(evidence, unit) for fresh in evidence.fresh if name in fresh}


def move(evidence: Evidence, unit: str, first: int | None = None) -> float:
    """The change of a step over the weights: the middle over steps, and over elements."""
    names = [one for one in owned(evidence, unit) if evidence.sizes[one] > 0]
    weighted = [
        (median(moves[:first]), evidence.sizes[name])
        for name in names
        if (moves := [one for one in evidence.moves[name] if one > 0 and math.isfinite(one)])
    ]
    if not weighted:
        return 0.0
    half, so_far = sum(size for _, size in weighted) / 2, 0
    for value, size in sorted(weighted):
        so_far += size
        if so_far >= half:
            return value
    return weighted[-1][0]


def variety(evidence: Evidence, unit: str) -> list[float]:
    """The variance over the batch over the mean square, by look."""
    found = []
    for seen in evidence.looks:
        if unit in seen and seen[unit].outputs:
            output = samples(seen[unit].outputs)
            found.append(float(output.var(0, correction=0).mean() / output.square().mean()))
    return found


def spread(evidence: Evidence, unit: str) -> list[float]:
    """The largest standard deviation of a channel, by look."""
    return [
        float(samples(seen[unit].outputs).std(0, correction=0).max())
        for seen in evidence.looks
        if unit in seen and seen[unit].outputs
    ]


def leftover(evidence: Evidence, unit: str) -> float:
    """How far the gradients that a step used are from fresh ones, over their size, at most."""
    apart = 0.0
    for fresh, used in zip(evidence.fresh, evidence.used, strict=True):
        for name in owned(evidence, unit):
            if name in fresh and name in used and float(fresh[name].norm()) > 0:
                far = float((used[name] - fresh[name]).norm() / fresh[name].norm())
                apart = max(apart, far)
    return apart


def deafness(evidence: Evidence, unit: str, channels: set[int]) -> float:
    """How much the loss changes, relatively, if some channels are turned into noise."""
    trainee = evidence.trainee
    from tests.detection.drive import loss_of

    size = min(trainee.run.batch, len(trainee.x))
    batch = trainee.x[:size], trainee.y[:size]
    module = unit_names(trainee)[unit]

    def noise(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
        changed = output.clone()
        axis = 1 if output.dim() == 4 else output.dim() - 1
        part = changed.movedim(axis, -1)
        part[..., sorted(channels)] = (
            torch.flip(part[..., sorted(channels)], [0]) + 0.1 * part.std()
        )
        return changed

    losses = []
    for hook in (None, noise):
        handle = module.register_forward_hook(hook) if hook else None
        with torch.no_grad(), torch.random.fork_rng([]):
            torch.manual_seed(0)
            losses.append(float(loss_of(trainee, 0, trainee.net, *batch, 0)))
        if handle:
            handle.remove()
    return abs(losses[1] - losses[0]) / abs(losses[0])


def fell(evidence: Evidence) -> bool:
    """Did the loss fall by a tenth?"""
    losses = evidence.losses
    last = median(losses[len(losses) // 2 :])
    return math.isfinite(last) and losses[0] - last >= 0.1 * abs(losses[0])

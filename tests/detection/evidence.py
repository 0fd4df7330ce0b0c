"""Measures a run by hand: gradients from `autograd.grad` on a copy, weights bit by bit.

Before each optimizer's step the network is copied and the copy's loss is taken on the same
batches; forward hooks of the copy keep what each module returned.
"""

from collections import defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.optim import Optimizer

from tests.detection.drive import Trainee, Watcher, loss_of, prepare, train
from tests.detection.run import Run


@dataclass(slots=True)
class Seen:
    """What one module returned in one step, and what the loss wants of it."""

    outputs: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)  # only of outputs that got one

    @property
    def norm(self) -> float:
        """The norm of the gradients."""
        return sum(float(one.double().square().sum()) for one in self.gradients) ** 0.5


@dataclass(slots=True)
class Evidence:
    """All that was measured of one run."""

    trainee: Trainee
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)  # before and after, over all data
    looks: list[dict[str, Seen]] = field(default_factory=list)  # unit -> what was seen, by look
    steps: list[int] = field(default_factory=list)  # of each look
    fresh: list[dict[str, Tensor]] = field(default_factory=list)  # gradients taken anew, by look
    used: list[dict[str, Tensor]] = field(default_factory=list)  # those that backward left
    moves: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    shifts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    changed: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    called: set[str] = field(default_factory=set)
    sizes: dict[str, int] = field(default_factory=dict)


def gather(run: Run, seed: int) -> Evidence:
    """Train a run once and measure it all along."""
    trainee = prepare(run, seed)
    evidence = Evidence(trainee)
    watcher = _Observer(evidence)
    evidence.scores.append(score(evidence))
    evidence.losses = train(trainee, watcher)
    evidence.scores.append(score(evidence))
    return evidence


def score(evidence: Evidence) -> float:
    """Return the run's own score over all data; nan: it has none."""
    trainee = evidence.trainee
    if trainee.run.score is None:
        return float("nan")
    with torch.no_grad(), torch.random.fork_rng([]):
        return float(trainee.run.score(trainee.net, trainee.x, trainee.y))


def unit_names(trainee: Trainee) -> dict[str, nn.Module]:
    """Return every module by the id that an audit gives it."""
    return {
        f"{node}/{path}" if path else node: module
        for node, whole in trainee.nodes.items()
        for path, module in whole.named_modules()
    }


def look(
    trainee: Trainee, batches: list[tuple[Tensor, Tensor]], part: int, step: int
) -> tuple[dict[str, Seen], dict[str, Tensor]]:
    """Return what each module of a copy does on batches, and the gradient of each parameter."""
    copy = deepcopy(trainee.net)
    alone = len(trainee.nodes) == 1 and "net" in trainee.nodes
    nodes = {"net": copy} if alone else dict(copy.items())  # type: ignore[operator]
    seen: dict[str, Seen] = defaultdict(Seen)
    modules = {
        f"{node}/{path}" if path else node: module
        for node, whole in nodes.items()
        for path, module in whole.named_modules()
    }
    for name, module in modules.items():
        module.register_forward_hook(_keeper(seen, name))
    names = [name for name, one in copy.named_parameters() if one.requires_grad]
    parameters = [one for one in copy.parameters() if one.requires_grad]
    with torch.random.fork_rng([]):
        loss = sum(loss_of(trainee, part, copy, x, y, step) / len(batches) for x, y in batches)
    tensors = [(name, one) for name, s in seen.items() for one in s.outputs if one.requires_grad]
    assert isinstance(loss, Tensor)
    found = torch.autograd.grad(loss, [*parameters, *(t for _, t in tensors)], allow_unused=True)
    for (name, _), gradient in zip(tensors, found[len(parameters) :], strict=True):
        if gradient is not None:
            seen[name].gradients.append(gradient.detach())
    fresh = {
        name: one.detach().to_dense()
        for name, one in zip(names, found, strict=False)
        if one is not None
    }
    for one in seen.values():
        one.outputs = [tensor.detach() for tensor in one.outputs]
    return dict(seen), fresh


def _keeper(seen: dict[str, Seen], name: str) -> Any:
    def keep(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        seen[name].outputs.extend(_tensors(output))
        seen[name].inputs.extend(one.detach() for one in _tensors(inputs))

    return keep


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, PackedSequence):
        return [value.data]
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() and value.dim() else []  # a loss is no output
    if isinstance(value, dict):
        return [one for part in value.values() for one in _tensors(part)]
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in _tensors(part)]
    return []


class _Observer(Watcher):
    """Fills the evidence."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.before: dict[str, Tensor] = {}

    def begin(self, run: Run, net: nn.Module, optimizers: tuple[Optimizer, ...]) -> None:
        self.net = net
        self.evidence.sizes = {name: one.numel() for name, one in self._trainable()}

    def turn(self, part: int, batches: list[tuple[Tensor, Tensor]], step: int) -> None:
        seen, fresh = look(self.evidence.trainee, batches, part, step)
        self.evidence.looks.append(seen)
        self.evidence.steps.append(step)
        self.evidence.fresh.append(fresh)
        self.evidence.called |= set(seen)
        self.before = {name: one.detach().clone() for name, one in self._trainable()}

    def ready(self, part: int, loss: float, step: int) -> None:
        trainee = self.evidence.trainee
        alone = len(trainee.run.losses) == 1
        optimizers = trainee.optimizers if alone else (trainee.optimizers[part],)
        held = {id(p) for one in optimizers for group in one.param_groups for p in group["params"]}
        self.evidence.used.append(
            {
                name: one.grad.detach().to_dense().clone()
                for name, one in self._trainable()
                if one.grad is not None and id(one) in held
            }
        )

    def stepped(self, part: int, step: int) -> None:
        for name, one in self._trainable():
            old, new = self.before[name].double(), one.detach().double()
            bits = not torch.equal(self.before[name], one.detach())
            self.evidence.changed[name].append(bits)
            size = float(old.norm())
            shift = float((new - old).norm())
            self.evidence.shifts[name].append(shift)
            self.evidence.moves[name].append(shift / size if size else 0.0)

    def _trainable(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, one) for name, one in self.net.named_parameters() if one.requires_grad]

"""Audits a run and compares what is reported with the run's labels.

A label is *found* if its flag stands at its unit, at a unit that localises it as well, or above
them; *placed* if it is not only above; *counted* if the number of channels is right. What a run
allows is true and secondary. Every other report is false.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

import soma
from soma.health import AuditReport
from tests.detection.drive import Hands, Scale, Trainee, prepare, train
from tests.detection.run import Label, Run

_NEUTRAL = ("UNOBSERVED", "NO_DATA")


@dataclass(frozen=True, slots=True)
class Said:
    """A flag at a unit."""

    unit: str
    flag: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Hit:
    """What became of a label."""

    label: Label
    found: bool
    placed: bool
    counted: bool | None  # None: there is nothing to count


@dataclass(frozen=True, slots=True)
class Score:
    """What an audit said of a run, and how right it was."""

    run: Run
    said: tuple[Said, ...]
    hits: tuple[Hit, ...]
    wrong: tuple[Said, ...]
    seconds: float

    @property
    def is_right(self) -> bool:
        """Is all found, placed and counted, and nothing false said?"""
        return not self.wrong and all(
            one.placed and one.counted in (None, True) for one in self.hits
        )

    @property
    def verdict(self) -> frozenset[tuple[str, str]]:
        """The flags by unit, without their counts."""
        return frozenset((one.unit, one.flag) for one in self.said)


def audited(run: Run, seed: int, *, patterns: bool = False, scale: Scale = Scale()) -> AuditReport:  # noqa: B008  # frozen
    """Train a run under an audit with the usual thresholds: of a graph where one can train it."""
    trainee = prepare(run, seed, scale)
    inside = {name: _names(one) for name, one in trainee.nodes.items()} if patterns else True
    channels = soma.ChannelConfig(groups=run.groups) if run.groups else True
    if run.graph and not patterns:
        return _in_a_graph(trainee, channels)
    with soma.audit_modules(
        trainee.nodes, _optimizers(trainee), inside=inside, channels=channels
    ) as audit:
        train(trainee)
    return audit.report()


class _Held(soma.DifferentiableFilter):
    """A filter of a module that is there already."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def build_module(self, input_shape: object) -> nn.Module:
        return self.module

    def forward(self, x: Tensor, state: object = None) -> tuple[object, dict[str, object]]:
        return self._module(x), {}


def _in_a_graph(trainee: Trainee, channels: bool | soma.ChannelConfig) -> AuditReport:
    """Train by the loop that users of a graph write; the audit is told the loss by it."""
    graph = soma.Graph()
    graph.node("net", _Held(trainee.net))
    state = torch.random.get_rng_state()
    graph.materialize(trainee.x[:2])
    torch.random.set_rng_state(state)
    graph.train()
    (optimizer,) = trainee.optimizers
    graph.set_optimizer(optimizer)
    context = graph.context()

    def forward(x: Tensor) -> Tensor:
        """Leave out the states that come with the output while training."""
        out = graph.forward(x)
        return out[0] if isinstance(out, tuple) else out

    def backward(loss: Tensor) -> None:
        with context:
            graph.backward(context, loss)

    hands = Hands(
        net=forward,
        zero=lambda _: graph.zero_grad(),
        backward=backward,
        step=lambda _: graph.step(context),
    )
    with graph.gradient_audit(inside=True, channels=channels) as audit:
        train(trainee, hands=hands)
    return audit.report()


def score(run: Run, seed: int, *, patterns: bool = False, scale: Scale = Scale()) -> Score:  # noqa: B008  # frozen
    """Audit a run and compare."""
    start = time.perf_counter()
    report = audited(run, seed, patterns=patterns, scale=scale)
    seconds = time.perf_counter() - start
    said = tuple(_said(report))
    explained: set[Said] = set()
    hits = []
    for label in run.labels:
        hit, those = _hit(label, said)
        hits.append(hit)
        explained |= those
    wrong = tuple(one for one in said if one not in explained and not _is_allowed(run, one))
    return Score(run, said, tuple(hits), wrong, seconds)


def _optimizers(trainee: Trainee) -> object:
    found = trainee.optimizers
    return found[0] if len(found) == 1 else list(found)


def _names(module: nn.Module) -> list[str]:
    """Name every submodule that is called, as a user would who lists them."""
    return [
        name
        for name, one in module.named_modules()
        if name and not isinstance(one, (nn.ModuleList, nn.ModuleDict))
    ]


def _said(report: AuditReport) -> Iterator[Said]:
    for row in report.filters:
        for flag in row.flags:
            name, count = re.fullmatch(r"([A-Z_]+)(?:\((.*)\))?", flag, re.DOTALL).groups()  # type: ignore[union-attr]
            if name not in _NEUTRAL:
                yield Said(row.filter_id, name, int(count) if count and count.isdigit() else None)


def _hit(label: Label, said: tuple[Said, ...]) -> tuple[Hit, set[Said]]:
    here = (label.unit, *label.also)
    flags = (label.flag, *label.names)
    placed = {one for one in said if one.flag in flags and one.unit in here}
    above = {
        one for one in said if one.flag in flags and any(_is_above(one.unit, id) for id in here)
    }
    counts = {one.count for one in placed if one.flag == label.flag}
    counted = None if label.count is None else label.count in counts
    return Hit(label, bool(placed or above), bool(placed), counted), placed | above


def _is_above(outer: str, inner: str) -> bool:
    return inner != outer and inner.startswith(f"{outer}." if "/" in outer else f"{outer}/")


def _is_allowed(run: Run, one: Said) -> bool:
    return any(
        fnmatchcase(one.unit, unit) and flag in ("*", one.flag) for unit, flag in run.allowed
    )

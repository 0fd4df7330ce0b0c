"""What runs inside a worker's process: the nodes of one session, built, called and stepped.

The functions below are what a client calls; each answers with a value or with a `Failure`.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import torch
import torch.distributed.autograd as dist_autograd
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from soma.audit import ChannelConfig, InsideByNode
from soma.core import Filter, NodeId, Topology
from soma.distributed._aligned import received, sent
from soma.distributed._messages import (
    Answer,
    Built,
    Contents,
    Failure,
    Group,
    Heard,
    Mode,
    Place,
    Step,
    Weight,
)
from soma.distributed._watched import Outposts
from soma.engine import Call, Runner
from soma.health import Measurements, Unit
from soma.training import DifferentiableFilter, Held, TrainingRun
from soma.training import build as build_module

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


Chore = tuple[Optimizer, list[Tensor]]  # an optimizer to step, and its weights


class Hosted:
    """One differentiable node, in a graph of its own."""

    def __init__(self, id: NodeId, filter: DifferentiableFilter, device: torch.device) -> None:
        topology = Topology()
        topology.add(filter, id)
        self.filter = filter
        self.device = device
        self.node = topology.node(id)
        self.runner = Runner(topology, seed=None, executor=None)
        self._run = TrainingRun(self.runner)
        self._calls: dict[bool, Call] = {}
        self._frozen: tuple[str, ...] | None = None  # as the client last had it

    @property
    def module(self) -> nn.Module:
        """The module, once it is built."""
        assert self.filter._live is not None
        return self.filter._live

    def build(self, x: object) -> object:
        """Build the module, and answer to a sample in eval."""
        output = build_module(self.runner, self.node, received(x, self.device))
        self.module.to(self.device)
        self._calls = {}
        return sent(output)

    def answer(self, x: object, mode: Mode) -> Answer:
        """Return what the node gives."""
        if self.filter.training is not mode.module_trains:
            self.filter.train(mode.module_trains)
        if mode.frozen != self._frozen:
            for name, parameter in self.module.named_parameters():
                parameter.requires_grad_(name not in mode.frozen)
            self._frozen = mode.frozen
        call = self._calls.get(mode.graph_trains)
        if call is None:
            call = self._run.call(self.node, judging=not mode.graph_trains)
            self._calls[mode.graph_trains] = call
        if mode.generator is not None:
            torch.set_rng_state(mode.generator)
        before = torch.get_rng_state()
        with torch.set_grad_enabled(mode.gradients):
            given = received(x, self.device)
            with HOST.outposts.hearing(self.node.id, mode.turns, call.function, given) as heard:
                answer = call.function(given)
                both = answer if call.has_extra else (answer, {})
                output, aux = cast(tuple[object, object], both)
                heard(output)
            after = torch.get_rng_state()
            drawn = None if torch.equal(before, after) else after
            if aux:
                output, aux = cast(tuple[object, object], sent((output, aux)))
            else:
                output = sent(output)
            return output, aux, drawn

    def tensors(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name."""
        return {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}


class Host:
    """Everything of one session."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.nodes: dict[Place, Hosted] = {}
        self.plain: dict[Place, tuple[Filter, object]] = {}
        self.outposts = Outposts()
        self._optimizers: dict[tuple[int, str], tuple[int, Optimizer, list[list[Tensor]]]] = {}
        self._steps: dict[int, tuple[Step, ...]] = {}  # of each graph, as the client last had it
        self._chores: dict[int, list[Chore]] = {}

    def begin(self, device: str) -> None:
        """Use a device; an error tells that there is none such."""
        self.device = torch.device(device)
        weight = nn.Parameter(torch.zeros(1, device=self.device))
        # torch loads seconds of code at the first step, which would count as a call's time.
        SGD([weight], lr=0.0).step()

    def weights(self, group: Group) -> list[Tensor]:
        """Return the parameters of a group."""
        return [self.nodes[place].module.get_parameter(name) for place, name in group.weights]

    def chores(self, graph: int, steps: "tuple[Step, ...] | None") -> list[Chore]:
        """Return what a step of a graph is: of given optimizers, or of those of last time."""
        if steps is not None:
            self._steps[graph] = steps
            self._chores.pop(graph, None)
        if graph not in self._chores:
            self._chores[graph] = [self._chore(one) for one in self._steps[graph]]
        return self._chores[graph]

    def changed(self, place: Place, hosted: Hosted) -> None:
        """Keep a node's new module."""
        self.nodes[place] = hosted
        self._chores.pop(place.graph, None)

    def forget(self, graph: int) -> None:
        """Drop all of a graph."""
        holders: tuple[dict[Place, Any], ...] = (self.nodes, self.plain)
        for held in holders:
            for place in [one for one in held if one.graph == graph]:
                del held[place]
        for key in [one for one in self._optimizers if one[0] == graph]:
            del self._optimizers[key]
        self._steps.pop(graph, None)
        self._chores.pop(graph, None)

    def optimizer(self, step: Step) -> Optimizer:
        """Return the optimizer that a step is of, with the options that its groups have now."""
        return self._chore(step)[0]

    def _chore(self, step: Step) -> Chore:
        weights = [self.weights(group) for group in step.groups]
        key = (step.graph, step.name)
        known = self._optimizers.get(key)
        if known is None or known[0] != step.number or not _same(known[2], weights):
            groups = [
                {**group.options, "params": params}
                for group, params in zip(step.groups, weights, strict=True)
            ]
            optimizer = step.cls(groups, **dict[str, Any](step.defaults))
            known = self._optimizers[key] = step.number, optimizer, weights
        _, optimizer, _ = known
        for group, wanted in zip(optimizer.param_groups, step.groups, strict=True):
            group.update(wanted.options)
        return optimizer, [weight for part in weights for weight in part]


HOST = Host()


def _same(one: list[list[Tensor]], other: list[list[Tensor]]) -> bool:
    return [[*map(id, part)] for part in one] == [[*map(id, part)] for part in other]


def _answered(
    function: Callable[_Given, _Answer],
) -> Callable[_Given, "_Answer | Failure"]:
    @wraps(function)
    def answering(*args: _Given.args, **kwargs: _Given.kwargs) -> "_Answer | Failure":
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return Failure(type(error).__name__, _text(error), traceback.format_exc())

    return answering


def _text(error: Exception) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@_answered
def build(place: Place, filter: DifferentiableFilter, x: object, generator: Tensor) -> Built:
    """Build a node's module, with weights drawn as the client would have drawn them."""
    torch.set_rng_state(generator)
    hosted = Hosted(place.node, filter, HOST.device)
    output = hosted.build(x)
    HOST.changed(place, hosted)
    return Built(_weights(hosted.module), filter._built_for, output, torch.get_rng_state())


@_answered
def rebuild(place: Place, filter: DifferentiableFilter, weights: Mapping[str, Tensor]) -> None:
    """Build a module once more, for the shape that the filter remembers, with given weights."""
    hosted = Hosted(place.node, filter, HOST.device)
    filter.materialize(filter._built_for)
    hosted.module.to(HOST.device)
    HOST.changed(place, hosted)
    _take(hosted, weights)


@_answered
def answer(graph: int, node: NodeId, x: object, *mode: Any) -> Answer:
    """Return what one node gives; `mode` is a `Mode` in parts."""
    return HOST.nodes[Place(graph, node)].answer(x, Mode(*mode))


@_answered
def norms(context: int, weights: tuple[tuple[Place, str], ...]) -> list[Tensor | None]:
    """Return the norm of each parameter's gradient; None where there is no gradient."""
    gradients = dist_autograd.get_gradients(context)  # type: ignore[attr-defined]
    found = [gradients.get(one) for one in HOST.weights(Group({}, weights))]
    return [None if one is None else torch.linalg.vector_norm(one).cpu() for one in found]


@_answered
def step(
    context: int,
    scale: Tensor | None,
    audits: tuple[str, ...],
    graph: int,
    steps: tuple[Step, ...] | None,
) -> dict[str, Heard]:
    """Step optimizers with the gradients of a context, multiplied by `scale`.

    Return what each of some audits heard of it.

    Args:
        context: of the training step.
        scale: of clipping; None: as they are.
        audits: those that listen.
        graph: whose step it is.
        steps: the optimizers; None: as they were in the last step of this graph.
    """
    gradients = dist_autograd.get_gradients(context)  # type: ignore[attr-defined]
    if audits:
        HOST.outposts.gradients_came(audits, gradients)
    for optimizer, weights in HOST.chores(graph, steps):
        if audits:
            HOST.outposts.follow(audits, optimizer)
        for weight in weights:
            weight.grad = gradients.get(weight)
            if scale is not None and weight.grad is not None:
                weight.grad.mul_(scale.to(weight.device))
        optimizer.step()
        for weight in weights:
            weight.grad = None
    return HOST.outposts.stepped(audits)


@_answered
def dropped(context: int, audit: str) -> dict[str, Heard]:
    """Return what an audit hears of gradients that no optimizer will use."""
    gradients = dist_autograd.get_gradients(context)  # type: ignore[attr-defined]
    HOST.outposts.gradients_came((audit,), gradients)
    return HOST.outposts.stepped((audit,))


@_answered
def watch(
    audit: str, place: Place, inside: InsideByNode, channels: ChannelConfig | None
) -> tuple[Unit, ...]:
    """Have an audit watch a node; return what is watched of it, itself first."""
    hosted = HOST.nodes[place]
    own = getattr(hosted.filter, "_audit_scope", None)
    return HOST.outposts.opened(audit, inside, channels).add(place.node, hosted.module, own)


@_answered
def measured(audit: str, is_over: bool) -> Measurements:
    """Return what an audit has measured since this was last asked."""
    return HOST.outposts.measured(audit, is_over=is_over)


@_answered
def contents(place: Place) -> Contents:
    """Return what a node's module holds."""
    hosted = HOST.nodes[place]
    found, state = hosted.tensors(), hosted.module.state_dict()
    extra = {name: state[name] for name in state if name.endswith("_extra_state")}
    return Contents({name: one.detach().cpu() for name, one in found.items()}, extra)


@_answered
def held(steps: tuple[Step, ...]) -> dict[str, dict[tuple[Place, str], Held]]:
    """Return what the optimizers hold for each weight; see `Placement.optimizer_states`."""
    return {one.name: dict(_held(one)) for one in steps}


@_answered
def take(place: Place, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a node's module."""
    _take(HOST.nodes[place], weights)


@_answered
def fit(filter: Filter, x: object, y: object) -> object:
    """Return what a plain filter learns."""
    return filter.fit(x, y)


@_answered
def hold(place: Place, filter: Filter, state: object) -> None:
    """Keep a plain filter and what it has learned."""
    HOST.plain[place] = filter, state


@_answered
def run(place: Place, x: object, gradients: bool) -> object:
    """Return what a plain filter gives."""
    filter, state = HOST.plain[place]
    with torch.set_grad_enabled(gradients):
        return filter.forward(x, state)


def ping() -> None:
    """Answer."""


def forget(graphs: tuple[int, ...]) -> None:
    """Drop all that is held for graphs that the client has no more."""
    for graph in graphs:
        HOST.forget(graph)


def _held(step: Step) -> Iterator[tuple[tuple[Place, str], Held]]:
    optimizer = HOST.optimizer(step)
    for key in (key for group in step.groups for key in group.weights):
        weight = HOST.nodes[key[0]].module.get_parameter(key[1])
        if weight in optimizer.state:
            yield (
                key,
                {
                    name: (not isinstance(one, Tensor) or one.device == weight.device, sent(one))
                    for name, one in optimizer.state[weight].items()
                },
            )


def _weights(module: nn.Module) -> tuple[Weight, ...]:
    return tuple(
        Weight(name, tuple(one.shape), one.dtype, one.requires_grad)
        for name, one in module.named_parameters()
    )


def _take(hosted: Hosted, weights: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in hosted.tensors().items():
            if name in weights and weights[name].shape == tensor.shape:
                tensor.copy_(weights[name])

"""What runs inside a worker's process: the nodes of one session, built, called and stepped.

The functions below are what a client calls; each answers with a value or with a `Failure`.
"""

import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import torch
import torch.distributed.autograd as dist_autograd
from torch import Tensor, nn
from torch.optim import Optimizer

from soma.audit import ChannelConfig, Outpost
from soma.audit import InsideByNode as Inside
from soma.core import Filter, NodeId, Topology
from soma.distributed._aligned import crossing
from soma.distributed._messages import Built, Failure, Group, Heard, Mode, Step, Turn, Weight
from soma.engine import Call, Runner
from soma.health import Measurements, Unit
from soma.training import DifferentiableFilter, TrainingRun, mapped
from soma.training import build as build_module

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


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

    @property
    def module(self) -> nn.Module:
        """The module, once it is built."""
        assert self.filter._live is not None
        return self.filter._live

    def build(self, x: object) -> object:
        """Build the module, and answer to a sample in eval."""
        output = build_module(self.runner, self.node, self.here(x))
        self.module.to(self.device)
        self._calls = {}
        return there(output)

    def answer(self, x: object, mode: Mode) -> tuple[object, object]:
        """Return `(output, aux)`."""
        if self.filter.training is not mode.module_trains:
            self.filter.train(mode.module_trains)
        for name, parameter in self.module.named_parameters():
            parameter.requires_grad_(name not in mode.frozen)
        call = self._calls.get(mode.graph_trains)
        if call is None:
            call = self._run.call(self.node, judging=not mode.graph_trains)
            self._calls[mode.graph_trains] = call
        with torch.set_grad_enabled(mode.gradients):
            given = self.here(crossing(x))
            with outposts(mode.turns) as listening:
                for one in listening:
                    one.begins(self.node.id, call.function, given)
                answer = call.function(given)
                output, aux = (
                    cast(tuple[object, object], answer) if call.has_extra else (answer, {})
                )
                for one in listening:
                    one.answered(self.node.id, output)
            return crossing(there(output)), crossing(there(aux))

    def tensors(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name."""
        return {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}

    def here(self, x: object) -> object:
        """Return a value with its tensors on the device of this worker."""
        return mapped(x, lambda one: one.to(self.device) if isinstance(one, Tensor) else one)


def there(value: object) -> object:
    """Return a value with its tensors where messages can carry them."""
    return mapped(value, lambda one: one.cpu() if isinstance(one, Tensor) else one)


class Host:
    """Everything of one session."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.device = torch.device("cpu")
        self.nodes: dict[NodeId, Hosted] = {}
        self.plain: dict[NodeId, tuple[Filter, object]] = {}
        self.outposts: dict[str, Outpost] = {}  # by audit
        self._optimizers: dict[str, tuple[Optimizer, list[list[Tensor]]]] = {}

    def begin(self, device: str) -> None:
        """Use a device; an error tells that there is none such."""
        self.device = torch.device(device)
        torch.empty(0, device=self.device)

    def weights(self, group: Group) -> list[Tensor]:
        """Return the parameters of a group."""
        return [self.nodes[node].module.get_parameter(name) for node, name in group.weights]

    def optimizer(self, step: Step) -> Optimizer:
        """Return the optimizer that a step is of, with the options that its groups have now."""
        weights = [self.weights(group) for group in step.groups]
        known = self._optimizers.get(step.name)
        if known is None or type(known[0]) is not step.cls or not _same(known[1], weights):
            groups = [
                {**group.options, "params": params}
                for group, params in zip(step.groups, weights, strict=True)
            ]
            known = (step.cls(groups, **dict[str, Any](step.defaults)), weights)
            self._optimizers[step.name] = known
        for group, wanted in zip(known[0].param_groups, step.groups, strict=True):
            group.update(wanted.options)
        return known[0]


HOST = Host()


@contextmanager
def outposts(turns: tuple[Turn, ...]) -> Iterator[list[Outpost]]:
    """Give the audits that measure a forward, at their step; the others hear nothing of it."""
    given = {one.audit: one for one in turns}
    with ExitStack() as stack:
        for audit, one in HOST.outposts.items():
            if audit not in given:
                stack.enter_context(one.deaf())
            else:
                turn = given[audit]
                one.turn_to(turn.step, whole=turn.whole, every=turn.every)
        yield [HOST.outposts[one] for one in given if one in HOST.outposts]


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
def build(node: NodeId, filter: DifferentiableFilter, x: object, generator: Tensor) -> Built:
    """Build a node's module, with weights drawn as the client would have drawn them."""
    torch.set_rng_state(generator)
    hosted = Hosted(node, filter, HOST.device)
    output = hosted.build(x)
    HOST.nodes[node] = hosted
    return Built(_weights(hosted.module), filter._built_for, output, torch.get_rng_state())


@_answered
def rebuild(node: NodeId, filter: DifferentiableFilter, weights: Mapping[str, Tensor]) -> None:
    """Build a module once more, for the shape that the filter remembers, with given weights."""
    hosted = Hosted(node, filter, HOST.device)
    filter.materialize(filter._built_for)
    hosted.module.to(HOST.device)
    HOST.nodes[node] = hosted
    _take(hosted, weights)


@_answered
def answer(node: NodeId, x: object, mode: Mode) -> tuple[object, object]:
    """Return `(output, aux)` of one node."""
    return HOST.nodes[node].answer(x, mode)


@_answered
def norms(context: int, weights: tuple[tuple[NodeId, str], ...]) -> list[Tensor | None]:
    """Return the norm of each parameter's gradient; None where there is no gradient."""
    gradients = dist_autograd.get_gradients(context)  # type: ignore[attr-defined]
    found = [gradients.get(one) for one in HOST.weights(Group({}, weights))]
    return [None if one is None else torch.linalg.vector_norm(one).cpu() for one in found]


@_answered
def step(context: int, steps: tuple[Step, ...], scale: Tensor | None) -> dict[str, Heard]:
    """Step the optimizers with the gradients of a context, multiplied by `scale`.

    Return what each audit heard of it.
    """
    gradients = dist_autograd.get_gradients(context)  # type: ignore[attr-defined]
    for outpost in HOST.outposts.values():
        outpost.gradients_came(gradients)
    for one in steps:
        optimizer = HOST.optimizer(one)
        for outpost in HOST.outposts.values():
            outpost.follow(optimizer)
        weights = [weight for group in one.groups for weight in HOST.weights(group)]
        for weight in weights:
            weight.grad = gradients.get(weight)
            if scale is not None and weight.grad is not None:
                weight.grad.mul_(scale.to(weight.device))
        optimizer.step()
        for weight in weights:
            weight.grad = None
    return {audit: Heard(*one.stepped()) for audit, one in HOST.outposts.items()}


@_answered
def watch(
    audit: str, node: NodeId, inside: Inside, channels: ChannelConfig | None
) -> tuple[Unit, ...]:
    """Have an audit watch a node; return what is watched of it, itself first."""
    if audit not in HOST.outposts:
        HOST.outposts[audit] = Outpost(inside, channels)
    hosted = HOST.nodes[node]
    own = getattr(hosted.filter, "_audit_scope", None)
    return HOST.outposts[audit].add(node, hosted.module, own)


@_answered
def measured(audit: str, is_over: bool) -> Measurements:
    """Return what an audit has measured since this was last asked."""
    outpost = HOST.outposts.pop(audit) if is_over else HOST.outposts[audit]
    if is_over:
        outpost.close()
    return outpost.measured()


@_answered
def tensors(node: NodeId) -> dict[str, Tensor]:
    """Return a node's parameters and buffers."""
    found = HOST.nodes[node].tensors()
    return {name: one.detach().cpu() for name, one in found.items()}


@_answered
def take(node: NodeId, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a node's module."""
    _take(HOST.nodes[node], weights)


@_answered
def fit(filter: Filter, x: object, y: object) -> object:
    """Return what a plain filter learns."""
    return filter.fit(x, y)


@_answered
def hold(node: NodeId, filter: Filter, state: object) -> None:
    """Keep a plain filter and what it has learned."""
    HOST.plain[node] = filter, state


@_answered
def run(node: NodeId, x: object, gradients: bool) -> object:
    """Return what a plain filter gives."""
    filter, state = HOST.plain[node]
    with torch.set_grad_enabled(gradients):
        return filter.forward(x, state)


def ping() -> None:
    """Answer."""


def end() -> None:
    """End the session."""
    HOST.ended.set()


def _weights(module: nn.Module) -> tuple[Weight, ...]:
    return tuple(
        Weight(name, tuple(one.shape), one.dtype, one.requires_grad)
        for name, one in module.named_parameters()
    )


def _take(hosted: Hosted, weights: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in hosted.tensors().items():
            if name in weights:
                tensor.copy_(weights[name])

"""What a program calls on a worker; each function answers with a value or with a `Failure`.

`HOST` is what they work on: nodes (`_hosted.py`), optimizers (`_optimizers.py`), audits
(`_watched.py`).
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
import torch.distributed.autograd as dist_autograd
from torch import Tensor, nn
from torch.optim import SGD

from soma.audit import ChannelConfig, InsideByNode
from soma.core import Filter, NodeId
from soma.distributed._aligned import sent
from soma.distributed._hosted import HostedNode
from soma.distributed._messages import (
    Answer,
    Built,
    Contents,
    Failure,
    Heard,
    Mode,
    Place,
    Step,
)
from soma.distributed._optimizers import HostedOptimizers
from soma.distributed._watched import Outposts
from soma.health import Measurements, Unit
from soma.training import DifferentiableFilter, Held

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class Host:
    """Everything of one session."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.nodes: dict[Place, HostedNode] = {}
        self.plain: dict[Place, tuple[Filter, object]] = {}
        self.outposts = Outposts()
        self.optimizers = HostedOptimizers(self.parameter)

    def begin(self, device: str) -> None:
        """Use a device; an error tells that there is none such."""
        self.device = torch.device(device)
        weight = nn.Parameter(torch.zeros(1, device=self.device))
        # torch loads seconds of code at the first step, which would count as a call's time.
        SGD([weight], lr=0.0).step()

    def hosted(self, place: Place, filter: DifferentiableFilter) -> HostedNode:
        """Return a node that is to have a module here."""
        return HostedNode(place.node, filter, self.device, self.outposts)

    def keep(self, place: Place, hosted: HostedNode) -> None:
        """Keep a node with its new module."""
        self.nodes[place] = hosted
        self.optimizers.rebuilt(place.graph)

    def parameter(self, place: Place, name: str) -> nn.Parameter:
        """Return a weight of a node."""
        return self.nodes[place].module.get_parameter(name)

    def forget(self, graph: int) -> None:
        """Drop all of a graph."""
        holders: tuple[dict[Place, Any], ...] = (self.nodes, self.plain)
        for held in holders:
            for place in [one for one in held if one.graph == graph]:
                del held[place]
        self.optimizers.forget(graph)


HOST = Host()


def _answered(
    function: Callable[_Given, _Answer],
) -> Callable[_Given, "_Answer | Failure"]:
    @wraps(function)
    def answering(*args: _Given.args, **kwargs: _Given.kwargs) -> "_Answer | Failure":
        try:
            return function(*args, **kwargs)
        except BaseException as error:  # a filter's `sys.exit()` too: it ends no thread of torch
            return Failure(type(error).__name__, _text(error), traceback.format_exc())

    return answering


def _text(error: BaseException) -> str:
    try:
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    except Exception:
        return "(it has no text: its `__str__` fails)"


@_answered
def build(place: Place, filter: DifferentiableFilter, x: object, generator: Tensor) -> Built:
    """Build a node's module, with weights drawn as the client would have drawn them."""
    torch.set_rng_state(generator)
    hosted = HOST.hosted(place, filter)
    output = hosted.build(x)
    HOST.keep(place, hosted)
    return Built(hosted.weights(), filter._built_for, output, torch.get_rng_state())


@_answered
def rebuild(place: Place, filter: DifferentiableFilter, weights: Mapping[str, Tensor]) -> None:
    """Build a module once more, for the shape that the filter remembers, with given weights."""
    hosted = HOST.hosted(place, filter)
    hosted.rebuild(weights)
    HOST.keep(place, hosted)


@_answered
def answer(graph: int, node: NodeId, x: object, *mode: Any) -> Answer:
    """Return what one node gives; `mode` is a `Mode` in parts."""
    return HOST.nodes[Place(graph, node)].answer(x, Mode(*mode))


@_answered
def norms(context: int, weights: tuple[tuple[Place, str], ...]) -> list[Tensor | None]:
    """Return the norm of each parameter's gradient; None where there is no gradient."""
    gradients = dist_autograd.get_gradients(context)  # type: ignore[attr-defined]
    found = [gradients.get(HOST.parameter(*one)) for one in weights]
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
    for optimizer, weights in HOST.optimizers.due(graph, steps):
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
    return HOST.nodes[place].contents()


@_answered
def held(steps: tuple[Step, ...]) -> dict[str, dict[tuple[Place, str], Held]]:
    """Return what the optimizers hold for each weight; see `Placement.optimizer_states`."""
    return {one.name: dict(_held(one)) for one in steps}


@_answered
def take(place: Place, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a node's module."""
    HOST.nodes[place].take(weights)


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
    optimizer = HOST.optimizers.of(step)
    for key in (key for group in step.groups for key in group.weights):
        weight = HOST.parameter(*key)
        if weight in optimizer.state:
            yield (
                key,
                {
                    name: (not isinstance(one, Tensor) or one.device == weight.device, sent(one))
                    for name, one in optimizer.state[weight].items()
                },
            )

"""Trains a graph whose nodes are on several workers: builds them, goes backward, steps.

A training step is one context of torch's distributed autograd: gradients lie in it, on each
worker, until every optimizer has stepped there.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from inspect import signature
from typing import NoReturn

import torch
import torch.distributed.autograd as dist_autograd
from torch import Tensor, nn
from torch.optim import Optimizer

from soma.core import Filter, Node, NodeId
from soma.distributed import _host
from soma.distributed._connection import Connection, connection_to
from soma.distributed._messages import Built, Group, Step, Turn
from soma.distributed._stand_in import RemoteFilter, RemoteModule, RemoteParameter
from soma.distributed._watching import Watching
from soma.engine import Runner
from soma.errors import ModeError, SomaError, TornStep, WorkerLost
from soma.training import DifferentiableFilter, Ear, Optimizers


class RpcPlacement:
    """The placement of one graph, over torch RPC."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._context: dist_autograd.context | None = None
        self._context_id = 0
        self._scale: Tensor | None = None  # what clipping multiplies this step's gradients by
        self._unstepped = False  # gradients that no optimizer has used, and nobody has cleared
        self._went_back = False  # backward ran in this context
        self._torn: str | None = None
        self._watching: list[Watching] = []

    def build(self, node: Node, x: object) -> object:
        """Build a node's module on its worker, unless it is built; return its answer to `x`."""
        filter, worker = node.filter, node.target
        assert isinstance(filter, DifferentiableFilter)
        assert worker is not None
        if isinstance(filter._live, RemoteModule):
            with torch.no_grad():
                return filter._live.answer(x, graph_trains=False)[0]
        connection = self._connection(renew=True)
        built: Built = connection.call(
            worker, _host.build, node.id, filter, x, torch.get_rng_state(), node=node.id
        )
        torch.set_rng_state(built.generator)
        filter._built_for = built.built_for  # type: ignore[assignment]
        filter._module = RemoteModule(node, worker, connection, built.weights, self._turns)
        state = self._runner.states.get(node.id)
        if state is not None:
            raise SomaError(
                f"`{node.id}` has a state that was set before it was built on {worker}. Build it "
                "first (`g.materialize(sample)`), then `g.load_state(state)`."
            )
        return built.output

    def begin(self) -> None:
        """Open a context; the one before is over, stepped or not."""
        if self._unstepped and self._context is not None:
            for one in self._watching:
                one.dropped(self._context_id)
        self._end()
        self._context = dist_autograd.context()
        self._context_id = self._context.__enter__()
        self._went_back = False
        self._scale = None

    def cleared(self) -> None:
        """Forget gradients of earlier contexts."""
        self._unstepped = False

    def backward(self, losses: Sequence[Tensor], *, retain_graph: bool) -> list[nn.Parameter]:
        """Run autograd over all workers; return the parameters here that have a gradient.

        Raises:
            ModeError: outside `with g.context()`, or gradients of an earlier one would add up.
            WorkerLost: a worker is gone; no weight has changed.
        """
        if self._context is None:
            raise ModeError(
                "`backward` was called outside `with g.context() as ctx`, and nodes of this graph "
                "are on workers: gradients of one step lie in its context. Put zero_grad, forward "
                "and backward inside; `g.step(ctx)` may come after it."
            )
        if self._unstepped and not self._went_back:
            raise ModeError(
                "gradients of an earlier context were neither stepped nor cleared, and over "
                "several contexts they do not add up where nodes are on workers. Call "
                "`g.zero_grad()` in each context, or add up the losses of one larger context."
            )
        self._refuse_torn()
        scalar = [loss if loss.dim() == 0 else loss.sum() for loss in losses]
        try:
            dist_autograd.backward(  # type: ignore[attr-defined]
                self._context_id, scalar, retain_graph=retain_graph
            )
        except RuntimeError as error:
            self._raise(error)
        self._unstepped = self._went_back = True
        gradients = dist_autograd.get_gradients(  # type: ignore[attr-defined]
            self._context_id
        )
        found = [one for _, one in self._local_parameters() if one in gradients]
        for parameter in found:
            parameter.grad = gradients[parameter]
        return found

    def clip(self, parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
        """Scale all gradients down to a norm of at most `max_norm`; return the norm before."""
        self._refuse_torn()
        ordered = list(parameters)
        remote = [one for one in ordered if isinstance(one, RemoteParameter)]
        known: dict[int, Tensor | None] = {
            id(one): None if one.grad is None else torch.linalg.vector_norm(one.grad)
            for one in ordered
            if not isinstance(one, RemoteParameter)
        }
        for worker, held in _by_worker(remote).items():
            weights = tuple((one.node, one.local_name) for one in held)
            norms = self._connection().call(worker, _host.norms, self._context_id, weights)
            known |= {id(one): norm for one, norm in zip(held, norms, strict=True)}
        norms = [norm for one in ordered if (norm := known[id(one)]) is not None]
        total = torch.linalg.vector_norm(torch.stack(norms)) if norms else torch.tensor(0.0)
        self._scale = torch.clamp(max_norm / (total + 1e-6), max=1.0)
        for one in ordered:
            if not isinstance(one, RemoteParameter) and one.grad is not None:
                one.grad.mul_(self._scale)
        return total

    def step(self, optimizers: Optimizers, only: "str | Sequence[str] | None") -> None:
        """Step every optimizer, on every worker and here.

        Raises:
            TornStep: some may have stepped and others not.
        """
        self._refuse_torn()
        orders = _orders(optimizers.chosen(only))
        if orders and self._context is None:
            raise ModeError(
                "`step` was called, and no context is open: `with g.context() as ctx` comes "
                "first, with forward and backward inside."
            )
        if self._context is not None:
            for worker in dict.fromkeys(name for one in self._watching for name in one.workers):
                orders.setdefault(worker, [])  # an audit hears of steps that move nothing there
        connection = self._connection() if orders else None
        running, heard = [], []
        try:
            for worker, steps in orders.items():
                assert connection is not None
                given = (self._context_id, tuple(steps), self._scale)
                running.append((worker, connection.begin(worker, _host.step, *given)))
            for worker, future in running:
                assert connection is not None
                heard.append(connection.result(future, worker))
        except SomaError as error:
            self._torn = str(error).partition("\n")[0]
            raise TornStep(
                f"a step failed on the way, so weights may have moved on some workers and not on "
                f"others: {error}"
            ) from error
        for one in self._watching:
            one.heard(heard)
        optimizers.step(only, None)  # what is here moves last: it is lost last
        self._unstepped = False
        self._end()

    def restore(self, weights: Mapping[NodeId, Mapping[str, Tensor]]) -> None:
        """Give nodes weights; those that were lost with a worker are built again."""
        nodes = self._runner.topology.nodes
        self._end()
        connection = self._connection(renew=True)
        for node in nodes.values():
            filter = node.filter
            if node.target is None or not isinstance(filter, DifferentiableFilter):
                continue
            module = filter._live
            if not isinstance(module, RemoteModule):
                continue
            if module.connection is connection:
                if node.id in weights:
                    module.take(weights[node.id])
                continue
            if node.id not in weights:
                raise WorkerLost(
                    f"what `{node.id}` had learned was lost with its worker, and the state that is "
                    "loaded has nothing for it."
                )
            bare = copy(filter)
            bare._module = None
            given = (node.id, bare, dict(weights[node.id]))
            connection.call(node.target, _host.rebuild, *given, node=node.id)
            module.connection = connection
        self._torn = None

    def listen(self, ear: Ear) -> Watching:
        """Measure the modules on workers, for an audit."""
        watching = Watching(ear, self._watching)
        self._watching.append(watching)
        return watching

    def _turns(self, module: RemoteModule) -> tuple[Turn, ...]:
        turns = [one.turn(module) for one in self._watching]
        return tuple(one for one in turns if one is not None)

    def _connection(self, *, renew: bool = False) -> Connection:
        return connection_to(targets(self._runner), renew=renew)

    def _local_parameters(self) -> Iterable[tuple[str, nn.Parameter]]:
        for node in self._runner.topology:
            filter = node.filter
            live = filter._live if isinstance(filter, DifferentiableFilter) else None
            if live is not None and not isinstance(live, RemoteModule):
                yield from live.named_parameters()

    def _end(self) -> None:
        context, self._context = self._context, None
        if context is not None:
            context.__exit__(None, None, None)

    def _refuse_torn(self) -> None:
        if self._torn is not None:
            raise TornStep(
                f"an earlier step failed on the way ({self._torn}), so weights may have moved on "
                "some workers and not on others. Load a state first: `g.load_state(state)`."
            )

    def _raise(self, error: RuntimeError) -> NoReturn:
        """Raise what happened to a backward, in which several workers took part."""
        connection = self._connection()
        worker = connection.silent() or connection.names[0]
        nodes = [node.id for node in self._runner.topology if node.target == worker]
        raise connection.explained(error, worker, nodes[0] if nodes else None) from error


def stand_in(runner: Runner, node: Node) -> Filter:
    """Return what stands here for a plain filter on a worker."""
    assert node.target is not None
    return RemoteFilter(node, node.target, lambda: connection_to(targets(runner), renew=True))


def targets(runner: Runner) -> list[str]:
    """Return the workers of a graph."""
    found = (node.target for node in runner.topology.nodes.values())
    return [*dict.fromkeys(one for one in found if one is not None)]


def _by_worker(parameters: Iterable[RemoteParameter]) -> dict[str, list[RemoteParameter]]:
    found: dict[str, list[RemoteParameter]] = {}
    for one in parameters:
        found.setdefault(one.worker, []).append(one)
    return found


def _orders(optimizers: Mapping[str, Optimizer]) -> dict[str, list[Step]]:
    """Return what each worker has to step; the groups are those of the optimizers made here."""
    orders: dict[str, list[Step]] = {}
    for name, optimizer in optimizers.items():
        by_group = [
            _by_worker(one for one in group["params"] if isinstance(one, RemoteParameter))
            for group in optimizer.param_groups
        ]
        for worker in dict.fromkeys(worker for held in by_group for worker in held):
            groups = tuple(
                Group(
                    {key: value for key, value in group.items() if key != "params"},
                    tuple((one.node, one.local_name) for one in held[worker]),
                )
                for group, held in zip(optimizer.param_groups, by_group, strict=True)
                if worker in held
            )
            step = Step(name, type(optimizer), _settings(optimizer), groups)
            orders.setdefault(worker, []).append(step)
    return orders


def _settings(optimizer: Optimizer) -> dict[str, object]:
    """Return the defaults that the optimizer's constructor takes; some classes add their own."""
    taken = signature(type(optimizer)).parameters
    return {name: value for name, value in optimizer.defaults.items() if name in taken}

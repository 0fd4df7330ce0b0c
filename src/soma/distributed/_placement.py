"""Trains a graph whose nodes are on several workers: builds them, goes backward, steps.

A training step is one context of torch's distributed autograd: gradients lie in it, on each
worker, until every optimizer has stepped there.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import torch
import torch.distributed.autograd as dist_autograd
from torch import Tensor, nn
from torch.optim import Optimizer

from soma.core import Node, NodeId
from soma.distributed import _context, _host
from soma.distributed._connection import Connection
from soma.distributed._graphs import connection_of, forget_dropped, number_of, place_of
from soma.distributed._messages import Built, Turn
from soma.distributed._orders import by_worker, orders_of
from soma.distributed._reach import Reach
from soma.distributed._stand_in import RemoteModule, RemoteParameter
from soma.distributed._stepping import Begun, Orders, Stepping
from soma.distributed._watching import Watching
from soma.engine import Runner
from soma.errors import ModeError, SomaError, TornStep, WorkerLost
from soma.training import DifferentiableFilter, Ear, Held, Optimizers


class RpcPlacement:
    """The placement of one graph, over torch RPC."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._context_id = 0
        self._scale: Tensor | None = None  # what clipping multiplies this step's gradients by
        self._unstepped = False  # gradients that no step has used, and nobody cleared
        self._went_back = False  # backward ran in this context
        self._torn: str | None = None
        self._reach = Reach()
        self._stepping = Stepping(number_of(runner))
        self._watching: list[Watching] = []  # audits

    def build(self, node: Node, x: object) -> object:
        """Build a node's module on its worker, unless it is built; return its answer to `x`."""
        filter, worker = node.filter, node.target
        assert isinstance(filter, DifferentiableFilter)
        assert worker is not None
        if isinstance(filter._live, RemoteModule):
            with torch.no_grad():
                return filter._live.answer(x, graph_trains=False)[0]
        connection, place = self._living(), place_of(self._runner, node.id)
        forget_dropped(connection)
        built: Built = connection.call(
            worker, _host.build, place, filter, x, torch.get_rng_state(), node=node.id
        )
        torch.set_rng_state(built.generator)
        filter._built_for = built.built_for  # type: ignore[assignment]
        filter._module = RemoteModule(
            node, place, worker, connection, built.weights, self._reach.told, self._turns
        )
        state = self._runner.states.get(node.id)
        if state is not None:
            raise SomaError(
                f"`{node.id}` has a state that was set before it was built on {worker}. Build it "
                "first (`g.materialize(sample)`), then `g.load_state(state)`."
            )
        return built.output

    def begin(self) -> None:
        """Open a context; the one before is over, stepped or not."""
        if self._unstepped and _context.is_open(self):
            for one in self._watching:
                one.dropped(self._context_id)
        self._context_id = _context.open_for(self)
        self._went_back = False
        self._scale = None
        self._reach.begin()

    def cleared(self) -> None:
        """Forget gradients of earlier contexts."""
        self._unstepped = False

    def backward(self, losses: Sequence[Tensor], *, retain_graph: bool) -> list[nn.Parameter]:
        """Run autograd over all workers; return the parameters here that have a gradient.

        Raises:
            ModeError: outside `with g.context()`, or gradients of an earlier one would add up.
            WorkerLost: a worker is gone; no weight has changed.
        """
        self._need_context("backward")
        if self._unstepped and not self._went_back:
            raise ModeError(
                "gradients of an earlier context were neither stepped nor cleared, and over "
                "several contexts they do not add up where nodes are on workers. Call "
                "`g.zero_grad()` in each context; to add up gradients, give `backward` several "
                "losses at once."
            )
        self._refuse_torn()
        self._reach.check(losses)
        scalar = [loss if loss.dim() == 0 else loss.sum() for loss in losses]
        try:
            dist_autograd.backward(  # type: ignore[attr-defined]
                self._context_id, scalar, retain_graph=retain_graph
            )
        except RuntimeError as error:
            nodes = {one.target: one.id for one in self._runner.topology if one.target is not None}
            raise self._connection().explained_of_several(error, nodes) from error
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
        for worker, held in by_worker(remote).items():
            weights = tuple((one.place, one.local_name) for one in held)
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
        chosen = optimizers.chosen(only)
        orders = self._stepping.orders(chosen)
        if not chosen:
            optimizers.step(only, None)  # says that there is none
        if orders:
            self._need_context("step")
        if _context.is_open(self):
            for worker in dict.fromkeys(name for one in self._watching for name in one.workers):
                orders.setdefault(worker, ())  # an audit hears of steps that move nothing there
        connection = self._connection() if orders else None
        if connection is not None:
            connection.check(next(iter(orders)))
        self._torn = "it was interrupted"  # until all have stepped
        try:
            begun = [] if connection is None else self._begun(connection, orders)
            optimizers.step(only, None)  # meanwhile
            answers = self._stepping.finish(begun)
            for one in self._watching:
                one.heard(answers)
        except SomaError as error:
            self._torn = str(error).partition("\n")[0]
            raise TornStep(
                f"a step failed on the way, so weights may have moved on some workers and not on "
                f"others: {error}"
            ) from error
        except Exception as error:
            self._torn = f"{type(error).__name__}: {error}"
            raise
        self._torn = None
        self._unstepped = False
        if only is None:
            _context.close()

    def optimizer_states(
        self, optimizers: Mapping[str, Optimizer]
    ) -> dict[str, dict[nn.Parameter, Held]]:
        """Return what optimizers hold on workers, by name and parameter."""
        states: dict[str, dict[nn.Parameter, Held]] = {name: {} for name in optimizers}
        parameters = {
            (one.place, one.local_name): one
            for optimizer in optimizers.values()
            for group in optimizer.param_groups
            for one in group["params"]
            if isinstance(one, RemoteParameter)
        }
        for worker, steps in orders_of(number_of(self._runner), optimizers).items():
            found = self._connection().call(worker, _host.held, tuple(steps))
            for name, held in found.items():
                states[name] |= {parameters[key]: one for key, one in held.items()}
        return states

    def restore(self, weights: Mapping[NodeId, Mapping[str, Tensor]], *, whole: bool) -> None:
        """Give nodes weights; those that were lost with a worker are built again."""
        nodes = self._runner.topology.nodes
        _context.close()
        connection = self._living()
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
            given = (module.place, bare, dict(weights[node.id]))
            connection.call(node.target, _host.rebuild, *given, node=node.id)
            module.connection = connection
        if whole:
            self._torn = None

    def listen(self, ear: Ear) -> Watching:
        """Measure the modules on workers, for an audit."""
        watching = Watching(ear, self._watching)
        self._watching.append(watching)
        return watching

    def _begun(self, connection: Connection, orders: Orders) -> list[Begun]:
        audits = tuple(one.audit for one in self._watching)
        return self._stepping.begin(connection, orders, self._context_id, self._scale, audits)

    def _turns(self, module: RemoteModule) -> tuple[Turn, ...]:
        turns = [one.turn(module) for one in self._watching]
        return tuple(one for one in turns if one is not None)

    def _connection(self) -> Connection:
        return connection_of(self._runner, renew=False)

    def _living(self) -> Connection:
        """Return a connection on which all workers answer, a new one if need be."""
        connection = connection_of(self._runner, renew=True)
        if connection.silent() is None:
            return connection
        return connection_of(self._runner, renew=True)

    def _local_parameters(self) -> Iterable[tuple[str, nn.Parameter]]:
        for node in self._runner.topology:
            filter = node.filter
            live = filter._live if isinstance(filter, DifferentiableFilter) else None
            if live is not None and not isinstance(live, RemoteModule):
                yield from live.named_parameters()

    def _need_context(self, asked: str) -> None:
        if not _context.is_open(self):
            raise ModeError(
                f"`{asked}` was called, and no context of this graph is open: nodes of it are on "
                "workers, where the gradients of a step lie in its context. It begins with "
                "`with g.context() as ctx`, goes on to `g.step(ctx)`, and is over when another "
                "begins, of any graph. Put zero_grad, forward and backward inside it."
            )

    def _refuse_torn(self) -> None:
        if self._torn is not None:
            raise TornStep(
                f"an earlier step failed on the way ({self._torn}), so weights may have moved on "
                "some workers and not on others. Load a whole state first: `g.load_state(state)`."
            )

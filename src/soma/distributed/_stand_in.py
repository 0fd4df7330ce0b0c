"""What stands on this side for what is on a worker: modules, their parameters, plain filters."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from soma.core import Filter, Node, NodeId
from soma.distributed import _host
from soma.distributed._aligned import received, sent
from soma.distributed._connection import Connection
from soma.distributed._graphs import connection_of, forget_dropped, place_of
from soma.distributed._messages import Contents, Mode, Place, Turn, Weight
from soma.engine import Runner, generators_kept
from soma.errors import InvalidInput, InvalidOutput
from soma.training import DifferentiableFilter, StandIn


class RemoteParameter(nn.Parameter):
    """A parameter on a worker: shape and type of it, without its numbers.

    An optimizer takes it like any other; its gradient is on the worker, and so is the step.
    """

    worker: str
    place: Place
    local_name: str  # in the module of the node

    def __repr__(self) -> str:  # type: ignore[override]
        return f"<{self.place.node}.{self.local_name} {tuple(self.shape)} on {self.worker}>"


class RemoteModule(StandIn):
    """The module of a node on a worker."""

    def __init__(
        self,
        node: Node,
        place: Place,
        worker: str,
        connection: Connection,
        weights: tuple[Weight, ...],
        told: Callable[[NodeId, str, object, object], None],
        turns: "Callable[[RemoteModule], tuple[Turn, ...]]",
    ) -> None:
        super().__init__()
        self._node = node
        self.place = place
        self.worker = worker
        self.connection = connection
        self._told = told  # of each answer that autograd may go back from
        self._turns = turns  # of the audits that listen
        self._draws = {True: True, False: True}  # in training, in eval, as far as is known
        self._weights = tuple(self._added(weight) for weight in weights)

    def answer(self, x: object, *, graph_trains: bool) -> tuple[object, dict[str, object]]:
        """Return `(output, aux)` of the node's filter, run on the worker."""
        frozen = tuple(one.local_name for one in self._weights if not one.requires_grad)
        draws, gradients = self._draws[self.training], torch.is_grad_enabled()
        generator = torch.get_rng_state() if draws else None
        turns = self._turns(self) if graph_trains and gradients else ()
        mode = Mode(graph_trains, self.training, gradients, frozen, generator, turns)
        message = sent(x)
        output, aux, after = self.connection.call(
            self.worker, _host.answer, *self.place, message, *mode, node=self.place.node
        )
        if after is not None and draws:
            torch.set_rng_state(after)
        self._draws[self.training] = after is not None
        output = received(output)
        if aux:
            output, aux = cast(tuple[object, object], received((output, aux)))
        if gradients:
            self._told(self.place.node, self.worker, message, (output, aux) if aux else output)
        return output, cast(dict[str, object], aux)

    def forward(self, x: object) -> object:
        """Return the output alone."""
        return self.answer(x, graph_trains=torch.is_grad_enabled())[0]

    def brought_home(self) -> nn.Module:
        """Return the module as it is on the worker, built here."""
        filter = self._node.filter
        assert isinstance(filter, DifferentiableFilter)
        with generators_kept():
            module = filter.build_module(filter._built_for)
        if not isinstance(module, nn.Module):
            raise InvalidOutput(f"`build_module` of `{self._node.id}` gave {module!r} here.")
        there: Contents = self.connection.call(
            self.worker, _host.contents, self.place, node=self.place.node
        )
        own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.data = there.tensors[name].clone()
        if there.extra:
            module.load_state_dict(there.extra, strict=False)
        asking = dict(self.named_parameters())
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(asking[name].requires_grad)
        return module

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights into the module on the worker."""
        self.connection.call(self.worker, _host.take, self.place, dict(weights), node=self._node.id)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the module on the worker."""
        return self.brought_home().state_dict(*args, **kwargs)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        raise InvalidOutput(
            f"`{self._node.id}` is on {self.worker}, which says where its modules live "
            "(`soma worker --device cuda:0`). Move the other nodes by themselves."
        )

    def __deepcopy__(self, memo: object) -> Any:
        raise InvalidInput(
            f"`{self.place.node}` is on {self.worker}, so the graph cannot be copied with its "
            "weights. `g.unfitted()` gives a graph to train anew, and `Graph.load(path)` one of "
            "what `g.save(path)` has kept, whose modules are here."
        )

    def _added(self, weight: Weight) -> RemoteParameter:
        empty = torch.empty(weight.shape, dtype=weight.dtype, device="meta")
        parameter = RemoteParameter(empty, requires_grad=weight.requires_grad)
        parameter.worker, parameter.place = self.worker, self.place
        parameter.local_name = weight.name
        *path, last = weight.name.split(".")
        holder: nn.Module = self
        for part in path:
            if part not in holder._modules:
                holder.add_module(part, nn.Module())
            holder = holder.get_submodule(part)
        holder.register_parameter(last, parameter)
        return parameter


class RemoteFilter(Filter):
    """A plain filter that fits and runs on a worker; its state is known here."""

    def __init__(
        self, node: Node, place: Place, worker: str, connect: Callable[[], Connection]
    ) -> None:
        super().__init__()
        self._node = node
        self._place = place
        self._worker = worker
        self._connect = connect
        self._held: tuple[Connection, object] | None = None  # the state that the worker has

    def fit(self, x: object, y: object = None) -> object:
        """Return what the filter learns on the worker."""
        node = self._node
        return self._connect().call(self._worker, _host.fit, node.filter, x, y, node=node.id)

    def forward(self, x: object, state: object) -> object:
        """Return what the filter gives on the worker, which gets its state once."""
        node, connection = self._node, self._connect()
        if self._held is None or self._held[0] is not connection or self._held[1] is not state:
            connection.call(self._worker, _host.hold, self._place, node.filter, state, node=node.id)
            self._held = connection, state
        gradients = torch.is_grad_enabled()
        return connection.call(self._worker, _host.run, self._place, x, gradients, node=node.id)


def stand_in(runner: Runner, node: Node) -> Filter:
    """Return what stands here for a plain filter on a worker."""
    assert node.target is not None

    def connection() -> Connection:
        found = connection_of(runner, renew=True)
        forget_dropped(found)
        return found

    return RemoteFilter(node, place_of(runner, node.id), node.target, connection)

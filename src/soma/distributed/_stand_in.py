"""What stands on this side for what is on a worker: modules, their parameters, plain filters."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from soma.core import Filter, Node, NodeId
from soma.distributed import _host
from soma.distributed._aligned import crossing
from soma.distributed._connection import Connection
from soma.distributed._messages import Mode, Turn, Weight
from soma.engine import generators_kept
from soma.errors import InvalidOutput
from soma.training import DifferentiableFilter, StandIn


class RemoteParameter(nn.Parameter):
    """A parameter on a worker: shape and type of it, without its numbers.

    An optimizer takes it like any other; its gradient is on the worker, and so is the step.
    """

    worker: str
    node: NodeId
    local_name: str  # in the module of the node

    def __repr__(self) -> str:  # type: ignore[override]
        return f"<{self.node}.{self.local_name} {tuple(self.shape)} on {self.worker}>"


class RemoteModule(StandIn):
    """The module of a node on a worker."""

    def __init__(
        self,
        node: Node,
        worker: str,
        connection: Connection,
        weights: "tuple[Weight, ...]",
        turns: "Callable[[RemoteModule], tuple[Turn, ...]]" = lambda _: (),
    ) -> None:
        super().__init__()
        self._node = node
        self.worker = worker
        self.connection = connection
        self._turns = turns  # of the audits that listen
        for weight in weights:
            self._add(weight)

    @property
    def node(self) -> NodeId:
        """The node's id."""
        return self._node.id

    def answer(self, x: object, *, graph_trains: bool) -> tuple[object, dict[str, object]]:
        """Return `(output, aux)` of the node's filter, run on the worker."""
        frozen = [name for name, one in self.named_parameters() if not one.requires_grad]
        gradients = torch.is_grad_enabled()
        turns = self._turns(self) if graph_trains and gradients else ()
        mode = Mode(graph_trains, self.training, gradients, tuple(frozen), turns)
        output, aux = self.connection.call(
            self.worker, _host.answer, self._node.id, crossing(x), mode, node=self._node.id
        )
        return crossing(output), cast(dict[str, object], crossing(aux))

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
        weights = self.tensors()
        own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.data = weights[name].clone()
        asking = dict(self.named_parameters())
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(asking[name].requires_grad)
        return module

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of the parameters and buffers."""
        found: dict[str, Tensor] = self.connection.call(
            self.worker, _host.tensors, self._node.id, node=self._node.id
        )
        return found

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights into the module on the worker."""
        self.connection.call(
            self.worker, _host.take, self._node.id, dict(weights), node=self._node.id
        )

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the module on the worker."""
        return self.brought_home().state_dict(*args, **kwargs)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        raise InvalidOutput(
            f"`{self._node.id}` is on {self.worker}, which says where its modules live "
            "(`soma worker --device cuda:0`). Move the other nodes by themselves."
        )

    def _add(self, weight: Weight) -> None:
        empty = torch.empty(weight.shape, dtype=weight.dtype, device="meta")
        parameter = RemoteParameter(empty, requires_grad=weight.requires_grad)
        parameter.worker, parameter.node = self.worker, self._node.id
        parameter.local_name = weight.name
        *path, last = weight.name.split(".")
        holder: nn.Module = self
        for part in path:
            if part not in holder._modules:
                holder.add_module(part, nn.Module())
            holder = holder.get_submodule(part)
        holder.register_parameter(last, parameter)


class RemoteFilter(Filter):
    """A plain filter that fits and runs on a worker; its state is known here."""

    def __init__(self, node: Node, worker: str, connect: Callable[[], Connection]) -> None:
        super().__init__()
        self._node = node
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
            connection.call(self._worker, _host.hold, node.id, node.filter, state, node=node.id)
            self._held = connection, state
        gradients = torch.is_grad_enabled()
        return connection.call(self._worker, _host.run, node.id, x, gradients, node=node.id)

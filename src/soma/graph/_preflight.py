"""`soma.preflight`: a look at a graph or a module before its first step."""

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from soma._extras import loaded, require
from soma.core import has_module
from soma.errors import InvalidInput
from soma.graph._graph import Graph

if TYPE_CHECKING:
    from torch import Tensor, nn

    from soma.audit.preflight import Preflight


def preflight(
    graph_or_module: "Graph | nn.Module", x: object, y: object = None, loss: object = None
) -> "Preflight":
    """Check a model on one batch before it is trained; `print` shows what was found.

    Does the loss reach every parameter, and does it begin where a guess would? Do signal and
    gradient keep their size over depth? Is each sample answered by itself? Can a few samples be
    learned by heart? All of it happens on copies: weights, buffers, gradients and random numbers
    stay as they are.

    >>> import soma, torch
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> x, y = torch.randn(32, 4), torch.arange(32) % 3
    >>> soma.preflight(net, x, y, nn.functional.cross_entropy).checks[0].told
    'all 4 trainable parameters get a gradient'

    Args:
        x: one batch, as `forward` takes it; eight rows or more tell most.
        y: its targets, as the loss takes them; for a graph as `fit` takes them.
        loss: `(output, y) -> loss`; for a graph also None or a dict by leaf, as in `fit`.

    Raises:
        NotFitted: a plain filter of the graph has to be fitted first.
        InvalidInput: a module without a loss, or something that is neither.
    """
    audit = require("soma.audit.preflight", extra="torch")
    if isinstance(graph_or_module, Graph):
        subject = GraphSubject(graph_or_module, loss)
        subject.build(x)
        return audit.run_preflight(subject, x, y)  # type: ignore[no-any-return]
    torch: Any = loaded("torch")
    if torch is None or not isinstance(graph_or_module, torch.nn.Module):
        raise InvalidInput(
            f"`preflight` got {type(graph_or_module).__name__}; a graph or a module is wanted."
        )
    if not callable(loss):
        raise InvalidInput(
            f"`loss` is {loss!r}; for a module a callable `(output, y) -> loss` is wanted, such as "
            "`torch.nn.functional.cross_entropy`."
        )
    return audit.run_preflight(audit.ModuleSubject(graph_or_module, loss), x, y)  # type: ignore[no-any-return]


class GraphSubject:
    """A copy of a graph, with its loss, as the checks want it."""

    def __init__(self, graph: Graph, loss: object) -> None:
        self.name = graph.name
        computed = require("soma.audit.preflight", extra="torch").computed_by_hooks
        memo: dict[int, object] = {}
        for _, filter in graph.filters():
            if (module := getattr(filter, "_live", None)) is not None:
                memo |= computed(module)
        self._graph = deepcopy(graph, memo)
        self._loss = loss
        self._graph._runner.memory = None  # made-up batches are not worth remembering

    def build(self, x: object) -> None:
        """Build the modules that are missing."""
        if not any(has_module(filter) for _, filter in self._graph.filters()):
            raise InvalidInput(
                "no node of this graph has a module, so nothing is trained step by step."
            )
        self._graph.materialize(x)

    def copy(self) -> "GraphSubject":
        """Return another copy, as it was at the start."""
        return GraphSubject(self._graph, self._loss)

    def modules(self) -> "Iterator[tuple[str, nn.Module]]":
        """Give the live module of each node that has one."""
        for id, filter in self._graph.filters():
            module: nn.Module | None = getattr(filter, "_live", None)
            if module is not None:
                yield id, module

    def answer(self, x: object) -> object:
        """Return the output in eval, without autograd."""
        return self._graph.eval().forward(x)

    def outputs_and_loss(self, x: object, y: object) -> "tuple[object, Tensor]":
        """Return the output in training, with its autograd history, and its loss."""
        output, aux = self._graph.train().forward(x)
        loss: Tensor = self._objective()(output, aux, y)
        return output, loss

    def loss_of(self, output: object, y: object) -> "Tensor":
        """Return the loss of an output made up by the caller."""
        loss: Tensor = self._objective()(output, {}, y)
        return loss

    def _objective(self) -> Any:
        training = require("soma.training", extra="torch")
        return training.Objective(self._graph._with_trainer(), self._loss)

"""Computational graphs and flows as functions that a model may call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, Protocol, runtime_checkable

from msgspec import Meta

from soma._extras import require
from soma.core import Filter, NodeId, has_module

Rows = Annotated[list[Any], Meta(description="Numbers in nested arrays, one for each row.")]


@runtime_checkable
class Computes(Protocol):
    """What a computational graph offers to a tool."""

    name: str

    def filters(self) -> list[tuple[NodeId, Filter]]:
        """Return ids and filters."""
        ...

    def forward(self, x: object) -> Any:
        """Return the output for an array or a tensor."""
        ...

    def evaluating(self) -> AbstractContextManager[None]:
        """Be in eval inside a `with`."""
        ...


@runtime_checkable
class Orchestrates(Protocol):
    """What a flow offers to a tool."""

    name: str

    def nodes(self) -> Mapping[NodeId, Filter]:
        """Return its nodes by id."""
        ...

    def run(self, value: object) -> Any:
        """Run on a value."""
        ...


def forward_of(graph: Computes) -> Callable[..., object]:
    """Return the forward of a graph, in eval, as a function of rows as JSON has them.

    A graph with modules gets a tensor of float32, others a NumPy array of float64.
    """

    def forward(x: Rows) -> object:
        if any(
            not isinstance(number, int | float) or isinstance(number, bool) for number in _leaves(x)
        ):
            raise ValueError(
                "`x` holds something that is no number. Write nested arrays of numbers."
            )
        if not any(has_module(filter) for _, filter in graph.filters()):
            return graph.forward(require("numpy", extra="torch").asarray(x, dtype="float64"))
        torch = require("torch", extra="torch")
        with graph.evaluating():
            return graph.forward(torch.tensor(x, dtype=torch.float32))

    forward.__doc__ = f"Compute the output of `{graph.name}` for rows of numbers."
    return forward


def run_of(flow: Orchestrates) -> Callable[..., object]:
    """Return the run of a flow as a function of its input."""

    def run(input: Any) -> object:
        return flow.run(input)

    run.__doc__ = f"Run `{flow.name}` on an input."
    return run


def _leaves(rows: Sequence[object]) -> Iterator[object]:
    for one in rows:
        if isinstance(one, list):
            yield from _leaves(one)
        else:
            yield one

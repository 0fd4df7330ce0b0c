"""A listener that keeps what it hears."""

from collections.abc import Iterator
from contextlib import contextmanager

from soma.core import Event, NodeId
from soma.graph import Graph


class Recording:
    """Every event of a graph, and every node's own output, in order.

    >>> from soma import Filter, Graph
    >>> class Double(Filter):
    ...     def forward(self, x, state):
    ...         return 2 * x
    >>> g = Graph.somatize(Double())
    >>> recording = Recording()
    >>> with recording.of(g):
    ...     output = g.forward(3)
    >>> recording.outputs
    [('double', 6)]
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.outputs: list[tuple[NodeId, object]] = []

    @contextmanager
    def of(self, graph: Graph) -> Iterator[None]:
        """Record what `graph` says inside the `with`."""
        listeners = graph._runner.listeners
        with listeners.listening(
            self.events.append, lambda node, value: self.outputs.append((node, value))
        ):
            yield

    def kinds(self) -> list[str]:
        """Return the names of the events' classes, in order."""
        return [type(event).__name__ for event in self.events]

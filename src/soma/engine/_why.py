"""`soma.why`: what a graph remembers of why its nodes ran. The lines are from `_facts.py`."""

from typing import Protocol

from soma.core import NodeId
from soma.engine._runner import Runner


class Running(Protocol):
    """A graph, which lives above this room."""

    _runner: Runner


def why(graph: Running, node: NodeId) -> str:
    """Say in one line why a node ran when it was last asked, or that it did not have to.

    Raises:
        UnknownNode: the graph has no such node.
    """
    runner = graph._runner
    id = runner.topology.node(node).id
    if runner.memory is None:
        return f"`{id}` runs each time: its graph has no cache; `Graph(cache=...)` gives it one"
    return runner.memory.reasons.get(
        id, f"`{id}` has not run yet; `g.fit` and `g.forward` in eval run it"
    )

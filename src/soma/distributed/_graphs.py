"""What workers call the graphs of a program, and when they hear that one is gone."""

from collections import deque
from itertools import count
from weakref import WeakKeyDictionary, finalize

from soma.core import NodeId
from soma.distributed._connection import Connection
from soma.distributed._current import connection_to
from soma.distributed._messages import Place
from soma.engine import Runner

_COUNT = count()
_NUMBERS: "WeakKeyDictionary[Runner, int]" = WeakKeyDictionary()
# Told to workers when a graph is next built there: a graph may go in any thread, in a call too.
_DROPPED: deque[int] = deque()


def number_of(runner: Runner) -> int:
    """Return what the workers call a graph: nodes of several may have one name."""
    if runner not in _NUMBERS:
        _NUMBERS[runner] = number = next(_COUNT)
        finalize(runner, _DROPPED.append, number).atexit = False
    return _NUMBERS[runner]


def place_of(runner: Runner, node: NodeId) -> Place:
    """Return what the workers call a node."""
    return Place(number_of(runner), node)


def connection_of(runner: Runner, *, renew: bool) -> Connection:
    """Return the connection to the workers of a graph; see `connection_to`."""
    found = (node.target for node in runner.topology.nodes.values())
    return connection_to([*dict.fromkeys(one for one in found if one is not None)], renew=renew)


def forget_dropped(connection: Connection) -> None:
    """Have the workers drop the graphs that are no more here."""
    found = tuple(_DROPPED.popleft() for _ in range(len(_DROPPED)))
    if found:
        connection.forget(found)

"""Runs a flow: each node when what it reads is there, those side by side that do not wait."""

from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from functools import partial
from time import perf_counter

from soma.core import NodeFailed, NodeFinished, NodeId, NodeStarted, Wiring
from soma.flow._declared import DeclaredFlow
from soma.flow._node import FlowNode
from soma.flow._pool import Pool
from soma.flow._running import Scope, Stopped
from soma.flow._suspend import Suspend
from soma.flow._turn import Turn


def walk(flow: DeclaredFlow, value: object, scope: Scope) -> object:
    """Return what a flow gives for a value: of several leaves a dict.

    Raises:
        Suspend: a person is wanted; what does not wait for the answer has ended.
    """
    return _Walk(flow, value, scope).through()


class _Walk:
    """One way through a flow."""

    def __init__(self, flow: DeclaredFlow, value: object, scope: Scope) -> None:
        self._nodes = flow.nodes()
        self._wiring: Wiring = flow.topology.wiring()
        self._value = value
        self._scope = scope
        self._given: dict[NodeId, object] = {}
        self._waiting = {node: len(self._wiring.predecessors[node]) for node in self._wiring.order}
        self._ready = [node for node, count in self._waiting.items() if not count]
        self._problem: BaseException | None = None

    def through(self) -> object:
        """Run all nodes, and return what the leaves give."""
        flights: dict[Future[object], NodeId] = {}
        with ExitStack() as stack:
            pool: Pool | None = None
            while self._ready or flights:
                if len(self._ready) == 1 and not flights:
                    self._one(self._ready.pop())
                    continue
                if pool is None:
                    most = self._scope.running.side_by_side
                    pool = stack.enter_context(Pool(most, self._scope.stop))
                for node in self._ready:
                    flights[pool.submit(partial(self._turn, node))] = node
                self._ready.clear()
                # An error here is Ctrl-C, which only this thread gets.
                done, _ = wait(flights, return_when=FIRST_COMPLETED)
                for flight in done:
                    self._landed(flights.pop(flight), flight)
        if self._problem is not None:
            raise self._problem
        leaves = self._wiring.leaves
        found = {leaf: self._given[leaf] for leaf in leaves}
        return found if len(leaves) > 1 else found[leaves[0]]

    def _one(self, node: NodeId) -> None:
        try:
            self._ended(node, self._turn(node))
        except (Exception, Suspend) as error:
            self._failed(error)

    def _landed(self, node: NodeId, flight: "Future[object]") -> None:
        error = flight.exception()
        if error is None:
            self._ended(node, flight.result())
        elif isinstance(error, Exception | Suspend):
            self._failed(error)
        else:
            raise error

    def _ended(self, node: NodeId, value: object) -> None:
        self._given[node] = value
        for reader in self._wiring.successors[node]:
            self._waiting[reader] -= 1
            if not self._waiting[reader] and not self._scope.stop.is_set():
                self._ready.append(reader)

    def _failed(self, error: BaseException) -> None:
        """Keep the worst that went wrong; a question lets the other branches go on."""
        if self._problem is None or _rank(error) < _rank(self._problem):
            self._problem = error
        if not isinstance(error, Suspend):
            self._scope.stop.set()
            self._ready.clear()

    def _turn(self, node: NodeId) -> object:
        if self._scope.is_stopped():
            raise Stopped
        return _node_turn(self._scope, self._nodes[node], node, self._read(node))

    def _read(self, node: NodeId) -> object:
        sources = self._wiring.predecessors[node]
        if not sources:
            return self._value
        values: Mapping[NodeId, object] = {source: self._given[source] for source in sources}
        return values if len(sources) > 1 else values[sources[0]]


def _rank(error: BaseException) -> int:
    return 2 if isinstance(error, Stopped) else int(isinstance(error, Suspend))


def _node_turn(scope: Scope, node: FlowNode, id: NodeId, value: object) -> object:
    running = scope.running
    turn = Turn(scope, id)
    running.say(NodeStarted(node=turn.node, phase=node.phase))
    start = perf_counter()
    try:
        given = node.run(value, turn)
    except Exception as error:
        if not isinstance(error, Stopped):
            running.say(NodeFailed(node=turn.node, phase=node.phase, error=type(error).__name__))
            if not hasattr(error, "__notes__"):
                error.add_note(f"This came up in the node `{turn.node}`.")
        raise
    seconds = perf_counter() - start
    if turn.replies and turn.performed:
        running.log(f"turns/{turn.node}", turn.replies)
    cached = running.replay.resumed and not turn.performed
    running.say(NodeFinished(node=turn.node, phase=node.phase, seconds=seconds, cached=cached))
    return given

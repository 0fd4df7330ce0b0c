"""`FlowTracer`: watches a graph train, now and then, and says what ran inside its modules.

The path of one turn: `_refusal.py` (may it be looked at?), `_turn.py` with
`_mode.py` (what ran), `_merge.py` (laid over the turns before).
"""

from collections.abc import Callable
from threading import Lock

from torch import nn

from soma.audit._flow._merge import MergedFlow
from soma.audit._flow._mode import FlowMode
from soma.audit._flow._refusal import refusal
from soma.audit._flow._turn import Turn, in_backward
from soma.core import Filter, ModuleFlow, NodeId, Topology, has_module


class FlowTracer:
    """Traces the data flow inside the nodes of a graph while it trains.

    It is a watcher for `Listeners.listening`, and looks at forwards number 1, 2, 4, 8 and so on;
    the others cost what they did.

    >>> import torch
    >>> from soma import DifferentiableFilter, Graph
    >>> class Dense(DifferentiableFilter):
    ...     def build_module(self, input_shape):
    ...         return torch.nn.Linear(input_shape[-1], 2)
    >>> g = Graph.somatize(Dense())
    >>> tracer = FlowTracer(g.topology)
    >>> with g._runner.listeners.listening(watcher=tracer):
    ...     g.fit(torch.zeros(8, 3), torch.zeros(8, 2)) and None
    >>> [(edge.source, edge.target) for edge in tracer.flows()[0].edges]
    [('input', 'Linear'), ('Linear', 'output')]
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._runs = 0
        self._again = False  # a module was built in the middle of the last turn
        self._merged: dict[NodeId, MergedFlow] = {}
        self._lock = Lock()

    def wanted(self) -> bool:
        """Whether the forward pass that begins now is traced."""
        if in_backward():  # a checkpoint computes again
            return False
        self._runs += 1
        again, self._again = self._again, False
        return again or self._runs & (self._runs - 1) == 0

    def turn(
        self, node: NodeId, function: Callable[[object], object], x: object, *, has_extra: bool
    ) -> object:
        """Return what `function(x)` gives, and trace it if there is a module inside."""
        filter = self._topology.nodes[node].filter
        if not has_module(filter):
            return function(x)
        module = _module_of(filter)
        if module is None:
            self._again = True
            return function(x)
        turn, reason = _prepared(filter, module)
        if turn is not None:
            turn.begin(x)
            with turn.hooked(), FlowMode(turn):
                answer = function(x)
            turn.end(*(answer if has_extra else (answer, {})))  # type: ignore[misc]
        else:
            answer = function(x)
        with self._lock:
            if node not in self._merged:
                self._merged[node] = MergedFlow(node, type(filter).__name__)
            self._merged[node].take(turn, module, reason)
        return answer

    def flows(self) -> tuple[ModuleFlow, ...]:
        """Return what has been traced so far, in the order of the nodes."""
        with self._lock:
            return tuple(
                self._merged[node].flow() for node in self._topology.nodes if node in self._merged
            )


def _prepared(filter: Filter, module: nn.Module) -> tuple[Turn | None, str | None]:
    """Return a turn to trace, or why there is none."""
    try:
        reason = refusal(filter, module)
        return (Turn(module), None) if reason is None else (None, reason)
    except Exception as error:  # an object that does not let itself be asked
        return None, f"tracing failed: {type(error).__name__}: {error}"


def _module_of(filter: Filter) -> nn.Module | None:
    module = getattr(filter, "_module", None)
    return module if isinstance(module, nn.Module) else None

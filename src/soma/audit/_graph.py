"""`audit_graph`: an audit of a graph's modules, node by node."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from torch import Tensor, nn

from soma.audit._audit import Audit
from soma.audit._processes._elsewhere import Elsewhere
from soma.audit._processes._joint_recorder import JointRecorder
from soma.audit._replaced import mark_replaced
from soma.audit._scope import ChannelConfig, InsideByNode, channel_config, check_nodes
from soma.audit._step._budget import Budget
from soma.audit._watch import Watch
from soma.core import Event, NodeId, NodeStarted, StepFinished
from soma.engine import Runner
from soma.health import Thresholds
from soma.tracking import RunListener


class Trained(Protocol):
    """What trains a graph's modules, as far as an audit needs it."""

    runner: Runner
    training: bool
    optimizers: Iterable[object]
    watchers: list[Any]  # each has `forward_begins`, `backward_begins` and `gradients_came`
    placement: Any  # where modules are in other processes: has `listen(ear)`; else None

    def forward(self, x: object) -> Any:
        """Run the graph in training."""
        ...

    @property
    def filters(self) -> Sequence[tuple[NodeId, Any]]:
        """The filters with modules, in topological order."""
        ...


@contextmanager
def audit_graph(
    trainer: Trained,
    *,
    thresholds: "Thresholds | Mapping[str, float] | None",
    inside: InsideByNode,
    channels: bool | ChannelConfig,
    budget: float | None,
) -> Iterator[Audit]:
    """Watch a graph while it is trained inside a `with`; `Graph.gradient_audit` says more."""
    check_nodes(inside, [node for node, _ in trainer.filters])
    config = channel_config(channels)
    recorder = JointRecorder(config, Budget(budget))
    recorder.outputs.are_told = True
    audit = Audit(recorder, thresholds)
    with ExitStack() as stack:
        stack.callback(audit.end)
        stack.callback(recorder.close)
        stack.callback(mark_replaced, recorder)
        watch = Watch(recorder, inside, stack)
        nodes = _Nodes(trainer, recorder, watch, Elsewhere(recorder, inside, config), stack)
        listeners = trainer.runner.listeners
        for one in listeners.events:
            if isinstance(one, RunListener):
                audit.keep_in(one.run)
        stack.enter_context(listeners.listening(nodes.happened, nodes.tap))
        trainer.watchers.append(nodes)
        stack.callback(trainer.watchers.remove, nodes)
        yield audit


class _Nodes:
    """Listens to a graph, and tells the recorder what happens to its nodes."""

    def __init__(
        self,
        trainer: Trained,
        recorder: JointRecorder,
        watch: Watch,
        elsewhere: Elsewhere,
        stack: ExitStack,
    ) -> None:
        self._trainer = trainer
        self._recorder = recorder
        self._watch = watch
        self._elsewhere = elsewhere
        self._stack = stack
        self._listens = False  # to modules in other processes
        self._spots: dict[NodeId, tuple[nn.Module, int]] = {}
        self._watch_new()
        watch.optimizers.follow(trainer.optimizers)

    def happened(self, event: Event) -> None:
        """Tell which node starts, and of steps of optimizers that torch's hooks do not know."""
        recorder = self._recorder
        if recorder.is_deaf:
            return
        if isinstance(event, NodeStarted):
            if self._trainer.training and event.node not in self._spots:
                recorder.guarded(None, self._watch_new)
            recorder.guarded(None, recorder.node_started, event.node)
        elif isinstance(event, StepFinished):
            end = recorder.stepped_elsewhere if self._listens else recorder.stepped_unseen
            recorder.guarded(None, end)
            recorder.tell()

    def tap(self, node: NodeId, value: object) -> None:
        """Take a node's own output."""
        if not self._trainer.training or self._recorder.is_deaf:
            return
        recorder = self._recorder
        known = self._spots.get(node)
        if known is not None:
            recorder.guarded(known[1], recorder.forward_seen, known[1], value)
        if node in self._trainer.runner.topology.wiring().leaves:
            recorder.guarded(None, recorder.network_output, value, f".{node}")

    def forward_begins(self, x: object) -> None:
        """Follow the optimizers that the graph has by now; tell what this forward starts from."""
        if self._recorder.is_deaf:
            return
        self._watch.optimizers.follow(self._trainer.optimizers)
        if self._trainer.placement is None:
            self._recorder.guarded(
                None, self._recorder.forward_begins, None, self._run_again, (x,), {}
            )
            return
        # Each process can run its own modules again, and none the whole.
        self._elsewhere.input = x
        if not self._listens:
            self._recorder.guarded(None, self._listen)

    def backward_begins(self, losses: Sequence[Tensor]) -> None:
        """Take the loss."""
        self._recorder.guarded(None, self._recorder.given_loss, losses)

    def gradients_came(self, parameters: Sequence[nn.Parameter]) -> None:
        """Take gradients that a backward over several processes has left here."""
        self._recorder.guarded(None, self._recorder.gradients_came, parameters)

    def _run_again(self, x: object) -> dict[str, object]:
        output, _ = self._trainer.forward(x)
        leaves = self._trainer.runner.topology.wiring().leaves
        return {leaf: output[leaf] if len(leaves) > 1 else output for leaf in leaves}

    def _watch_new(self) -> None:
        """Watch the modules that have been built since the last look."""
        for node, filter in self._trainer.filters:
            module = filter._live
            if module is None or node in self._spots:
                continue
            if self._is_elsewhere(node):
                at = self._watch.add_elsewhere(node, module)
                self._elsewhere.add(self._recorder.spots[at])
            else:
                own = getattr(filter, "_audit_scope", None)
                at = self._watch.add(node, module, own, is_tapped=True)
                if self._trainer.placement is not None:
                    self._watch.repeat_alone(node, module)
            self._spots[node] = (module, at)

    def _is_elsewhere(self, node: NodeId) -> bool:
        placed = self._trainer.runner.topology.nodes[node].target is not None
        return placed and self._trainer.placement is not None

    def _listen(self) -> None:
        self._listens = True
        listening = self._trainer.placement.listen(self._elsewhere)
        self._stack.callback(listening.close)
        self._recorder.bring = listening.fetch
        self._elsewhere.begin()

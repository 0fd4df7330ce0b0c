"""Turns what a graph says while it works into lines of a run: one for each node's turn."""

from collections.abc import Mapping
from itertools import count
from threading import get_ident
from time import perf_counter

from soma.core import (
    EpochFinished,
    Event,
    NodeFailed,
    NodeFinished,
    NodeId,
    NodeStarted,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
)
from soma.tracking._lines import (
    EpochLine,
    EventLine,
    MetricLine,
    NodeLine,
    StepLine,
    TrainedLine,
    TrainingLine,
)
from soma.tracking._numbers import number_out
from soma.tracking._plain import text_out
from soma.tracking._run import Run

_MOST_WHY = 2000  # characters
_Turn = tuple[int, NodeId]  # a thread may be in several graphs, and a graph in several threads


class RunListener:
    """Listens to a graph for a run; hand it to `Listeners.listening`.

    It takes no lock, since a forked child could find it held: each change is one operation.

    Args:
        reasons: why each node ran last, as the cache's memory keeps it up to date.
    """

    def __init__(self, run: Run, reasons: Mapping[NodeId, str] | None = None) -> None:
        self.run = run
        self._reasons: Mapping[NodeId, str] = {} if reasons is None else reasons
        self._turns: dict[_Turn, tuple[int, float, str | None]] = {}
        self._lanes: dict[int, _Turn] = {}
        self._epochs_before = 0  # of earlier trainings in this run
        self._epoch = 0

    def __call__(self, event: Event) -> None:
        """Keep what an event says; never raises for the disk's sake."""
        now = perf_counter() - self.run.began
        if isinstance(event, NodeStarted):
            self._node_started(event.node, now)
        elif isinstance(event, NodeFinished):
            thread, start, before = self._node_ended(event.node, now - event.seconds)
            why = None if event.cached else self._reasons.get(event.node)
            line = NodeLine(
                node=event.node,
                phase=event.phase,
                start=start,
                seconds=event.seconds,
                cached=event.cached,
                thread=thread,
                # The same text as before the turn tells of another turn: this one asked no cache.
                why=None if why is None or why is before else text_out(why[:_MOST_WHY]),
            )
            self.run.write(line)
        elif isinstance(event, NodeFailed):
            thread, start, _ = self._node_ended(event.node, now)
            self.run.write(
                NodeLine(
                    node=event.node,
                    phase=event.phase,
                    start=start,
                    seconds=now - start,
                    thread=thread,
                    error=text_out(event.error),
                )
            )
        else:
            self._training(event, now)

    def _node_started(self, node: NodeId, now: float) -> None:
        turn = (get_ident(), node)
        self._node_ended(node, now)  # it may have been dropped when its neighbour failed
        for lane in count():
            if self._lanes.setdefault(lane, turn) is turn:
                self._turns[turn] = lane, now, self._reasons.get(node)
                return

    def _node_ended(self, node: NodeId, start: float) -> tuple[int, float, str | None]:
        found = self._turns.pop((get_ident(), node), None)
        if found is None:  # it began before anybody listened
            return 0, start, None
        self._lanes.pop(found[0], None)
        return found

    def _training(self, event: Event, now: float) -> None:
        line: EventLine
        if isinstance(event, StepFinished):
            line = StepLine(step=event.step, time=now)
        elif isinstance(event, TrainingStarted):
            self._epochs_before += self._epoch
            self._epoch = 0
            losses = {leaf: text_out(name) for leaf, name in event.losses}
            line = TrainingLine(
                epochs=event.epochs, steps_per_epoch=event.steps_per_epoch, losses=losses, time=now
            )
        elif isinstance(event, EpochFinished):
            self._epoch = event.epoch
            line = self._epoch_line(event, now)
        elif isinstance(event, TrainingFinished):
            line = TrainedLine(time=now)
        else:
            return
        self.run.write(line)

    def _epoch_line(self, event: EpochFinished, now: float) -> EpochLine:
        """Keep the losses of an epoch as points too, which go on counting in a second training."""
        step = self._epochs_before + event.epoch
        loss, judged = number_out(event.loss), event.validation_loss
        validation_loss = None if judged is None else number_out(judged)
        self.run.write(MetricLine(name="loss", step=step, value=loss, time=now))
        if validation_loss is not None:
            self.run.write(
                MetricLine(name="validation_loss", step=step, value=validation_loss, time=now)
            )
        return EpochLine(
            epoch=event.epoch,
            loss=loss,
            validation_loss=validation_loss,
            seconds=event.seconds,
            time=now,
        )

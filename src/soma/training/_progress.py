"""Shows how far a fit is: a bar in a terminal, a line an epoch elsewhere, or nothing.

The loop calls these objects itself. As listeners they would make every step pay for events.
"""

from collections.abc import Mapping
from time import monotonic
from typing import TextIO

from torch import Tensor

from soma._extras import require
from soma.core import EpochFinished, NodeId, TrainingStarted
from soma.training._losses import summed

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_DRAWINGS = 0.1


class Progress:
    """Shows nothing; the classes below show something."""

    def started(self, event: TrainingStarted) -> None:
        """Take note that the first step comes next."""

    def stepped(self, losses: Mapping[NodeId, Tensor]) -> None:
        """Take note that a step has ended, with the losses of the leaves."""

    def epoch_ended(self, event: EpochFinished) -> None:
        """Take note that an epoch has ended, and its validation."""

    def finished(self) -> None:
        """Take note that nothing more comes, after an error too."""


class Lines(Progress):
    """Writes a plain line an epoch, but no more than one in ten seconds, and the last one."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.epochs = 0
        self.next_line = 0.0

    def started(self, event: TrainingStarted) -> None:
        """Say what is minimised."""
        self.epochs = event.epochs
        self.stream.write(f"{minimised(event)}\n")

    def epoch_ended(self, event: EpochFinished) -> None:
        """Say how the epoch went, unless a line was written just now."""
        now = monotonic()
        if now < self.next_line and event.epoch < self.epochs:
            return
        self.next_line = now + _SECONDS_BETWEEN_LINES
        judged = event.validation_loss
        validation = "" if judged is None else f"  validation {judged:.4g}"
        self.stream.write(
            f"epoch {event.epoch}/{self.epochs}  loss {event.loss:.4g}{validation}  "
            f"{event.seconds:.1f} s\n"
        )
        self.stream.flush()


class Bar(Progress):
    """Draws a bar at most ten times a second; a loss is read from its device only then."""

    def __init__(self, stream: TextIO) -> None:
        console = require("rich.console", extra="all")
        drawing = require("rich.progress", extra="all")
        self.console = console.Console(file=stream)
        self.bar = drawing.Progress(
            drawing.TextColumn("{task.description}", markup=False),
            drawing.BarColumn(),
            drawing.MofNCompleteColumn(),
            drawing.TextColumn("loss {task.fields[loss]}", markup=False),
            drawing.TextColumn("{task.fields[validation]}", markup=False),
            drawing.TimeElapsedColumn(),
            console=self.console,
            auto_refresh=False,
        )
        self.epochs = 0
        self.epoch = 1
        self.steps = 0
        self.next_drawing = 0.0

    def started(self, event: TrainingStarted) -> None:
        """Say what is minimised and draw an empty bar."""
        self.epochs = event.epochs
        self.console.print(minimised(event), markup=False, highlight=False)
        self.bar.start()
        self.task = self.bar.add_task(
            self._description(), total=event.steps_per_epoch, loss="…", validation=""
        )

    def stepped(self, losses: Mapping[NodeId, Tensor]) -> None:
        """Count the step, and draw where a tenth of a second has gone by."""
        self.steps += 1
        now = monotonic()
        if now >= self.next_drawing:
            self.next_drawing = now + _SECONDS_BETWEEN_DRAWINGS
            self._draw(loss=f"{float(summed(losses.values())):.4g}")

    def epoch_ended(self, event: EpochFinished) -> None:
        """Draw the epoch's mean loss, and begin the next one."""
        judged = event.validation_loss
        validation = "" if judged is None else f"validation {judged:.4g}"
        self._draw(loss=f"{event.loss:.4g}", validation=validation)
        if event.epoch < self.epochs:
            self.epoch = event.epoch + 1
            self.steps = 0

    def finished(self) -> None:
        """Leave the bar as it is and give the terminal back."""
        self.bar.stop()

    def _draw(self, **fields: str) -> None:
        self.bar.update(self.task, completed=self.steps, description=self._description(), **fields)
        self.bar.refresh()

    def _description(self) -> str:
        return f"epoch {self.epoch}/{self.epochs}"


def minimised(event: TrainingStarted) -> str:
    """Say which loss is minimised at which leaf."""
    return f"minimises {'; '.join(f'{leaf}: {name}' for leaf, name in event.losses)}"

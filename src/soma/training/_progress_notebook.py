"""One line under a notebook's cell that says how far a fit is; it needs no widgets."""

from collections.abc import Mapping
from html import escape
from time import monotonic
from typing import Any

from torch import Tensor

from soma._extras import loaded
from soma.core import EpochFinished, NodeId, TrainingStarted
from soma.training._losses import summed
from soma.training._progress import Progress, minimised

_SECONDS_BETWEEN_DRAWINGS = 0.25

_LINE = """
<div style="font: 13px system-ui, sans-serif; max-width: 46em">
<progress max="{steps}" value="{done}" aria-label="training" style="width: 14em"></progress>
<span>{words}</span>
</div>
"""


def in_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    shell = loaded("IPython")
    running = shell.get_ipython() if shell is not None else None
    return getattr(running, "kernel", None) is not None


class NotebookLine(Progress):
    """Draws a bar and the last losses, at most four times a second, in one place."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.objective = ""
        self.epochs = self.steps = self.all_steps = 0
        self.epoch = 1
        self.loss = self.validation = ""
        self.next_drawing = 0.0

    def started(self, event: TrainingStarted) -> None:
        """Draw an empty bar."""
        self.objective = minimised(event)
        self.epochs = event.epochs
        self.all_steps = (event.steps_per_epoch or 0) * event.epochs
        display: Any = loaded("IPython.display")
        self.handle = display.display(self, display_id=True)

    def stepped(self, losses: Mapping[NodeId, Tensor]) -> None:
        """Count the step, and draw where a quarter of a second has gone by."""
        self.steps += 1
        now = monotonic()
        if now >= self.next_drawing:
            self.next_drawing = now + _SECONDS_BETWEEN_DRAWINGS
            self.loss = f"loss {float(summed(losses.values())):.4g}"
            self.handle.update(self)

    def epoch_ended(self, event: EpochFinished) -> None:
        """Keep the epoch's mean losses for the next drawing."""
        judged = event.validation_loss
        self.loss = f"loss {event.loss:.4g}"
        self.validation = "" if judged is None else f"validation {judged:.4g}"
        self.epoch = min(event.epoch + 1, self.epochs)

    def finished(self) -> None:
        """Draw the end."""
        if self.handle is not None:
            self.handle.update(self)

    def __repr__(self) -> str:
        """Say it in words, for a front end without pictures."""
        said = (f"epoch {self.epoch}/{self.epochs}", self.loss, self.validation, self.objective)
        return " · ".join(word for word in said if word)

    def _repr_html_(self) -> str:
        steps = max(self.all_steps, 1)
        done = self.steps if self.all_steps else self.epoch / max(self.epochs, 1)
        return _LINE.format(steps=steps, done=done, words=escape(repr(self)))

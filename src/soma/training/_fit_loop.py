"""The passes over the data: a step, an epoch of steps, and an epoch that only judges."""

from contextlib import ExitStack
from itertools import count
from typing import cast

import torch
from torch import Tensor

from soma.core import NodeId
from soma.engine import Extras, generators_kept
from soma.errors import InvalidInput
from soma.training._batches import Batch, Batches, Rows
from soma.training._fit_steppers import needs_closure
from soma.training._fit_unreached import warn_of_unreached
from soma.training._losses import Losses, Means, summed
from soma.training._progress import Progress
from soma.training._trainer import Trainer
from soma.training._trial import module_kept


class Loop:
    """Trains a graph in training, pass by pass."""

    def __init__(
        self, trainer: Trainer, losses: Losses, clip: float | None, progress: Progress
    ) -> None:
        self.trainer = trainer
        self.losses = losses
        self.clip = clip
        self.progress = progress
        self.has_closure = needs_closure(trainer.optimizers)
        self.flow_checked = False

    def epoch(self, batches: Batches, generator: torch.Generator | None) -> Means:
        """Pass over the data once, in a new order; return the means of the losses."""
        means = Means()
        step = self._step_with_closure if self.has_closure else self._step
        for number, batch in enumerate(batches.shuffled(generator), 1):
            try:
                losses = step(batch)
            except Exception as error:
                error.add_note(f"in step {number} of the epoch, {_told(batch, batches)}")
                raise
            means.add(losses, batch.rows)
            self.progress.stepped(losses)
        return _some(means)

    def _step(self, batch: Batch) -> dict[NodeId, Tensor]:
        with self.trainer.context():
            losses = self._backward(batch)
        self.trainer.step(None, None)
        return {leaf: loss.detach() for leaf, loss in losses.items()}

    def _step_with_closure(self, batch: Batch) -> dict[NodeId, Tensor]:
        """Let the optimizer ask for the loss as often as it likes; the first answer counts."""
        asked: list[dict[NodeId, Tensor]] = []

        def closure() -> Tensor:
            losses = self._backward(batch)
            asked.append({leaf: loss.detach() for leaf, loss in losses.items()})
            return summed(asked[-1].values())

        with self.trainer.context():
            self.trainer.step(None, closure)
        return asked[0]

    def _backward(self, batch: Batch) -> dict[NodeId, Tensor]:
        trainer = self.trainer
        trainer.zero_grad()
        # In training `forward` gives a pair.
        output, aux = cast(tuple[object, Extras], trainer.forward(batch.x))
        losses = self.losses(output, aux, batch)
        trainer.backward(summed(losses.values()), retain_graph=False)
        if not self.flow_checked:
            self.flow_checked = True
            warn_of_unreached(trainer, self.losses.by_leaf)
        if self.clip is not None:
            trainer.clip_gradients(self.clip)
        return losses


def judged(trainer: Trainer, losses: Losses, batches: Batches) -> Means:
    """Pass over the data in eval and return the means of the losses; nothing else changes."""
    means = Means()
    with generators_kept(), trainer.evaluating(), torch.no_grad():
        for batch in batches.in_order():
            means.add(losses(*trainer.judged(batch.x), batch), batch.rows)
    return _some(means)


def trial(trainer: Trainer, batch: Batch) -> tuple[object, Extras]:
    """Return what the graph gives in eval for one batch, leaving no trace."""
    with ExitStack() as stack:
        for context in (generators_kept(), trainer.evaluating(), torch.no_grad()):
            stack.enter_context(context)
        for _, filter in trainer.filters:
            stack.enter_context(module_kept(filter._live))
        return trainer.judged(batch.x)


def _some(means: Means) -> Means:
    if not means.seen:
        raise InvalidInput(
            "an epoch gave no batches. A loader must give its batches anew each time it is "
            "iterated over."
        )
    return means


def _told(batch: Batch, batches: Batches) -> str:
    told = f"with a batch of {batch.rows} row{'' if batch.rows == 1 else 's'}"
    if isinstance(batches, Rows) and batch.rows == 1 < batches.rows:
        better = next(size for size in count(batches.batch_size) if batches.rows % size != 1)
        told += (
            f": what is left of {batches.rows} rows in batches of {batches.batch_size}. Layers "
            f"such as BatchNorm need two rows; `batch_size={better}` leaves no single one"
        )
    return told

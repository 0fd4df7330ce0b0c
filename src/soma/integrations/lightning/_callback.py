"""`AuditCallback` of Lightning.

Lightning runs forward, backward and clipping inside `optimizer.step`, as a closure, so the audit
learns between them that gradients are there.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from torch.optim import Optimizer

from soma.integrations._callback import Auditing

if TYPE_CHECKING or find_spec("pytorch_lightning") or not find_spec("lightning"):
    from pytorch_lightning import Callback, LightningModule, Trainer
else:  # the same library by its other name; either's trainers take callbacks of both
    from lightning.pytorch import Callback, LightningModule, Trainer


class AuditCallback(Auditing, Callback):
    """Watches the parts of a `LightningModule` while it is fitted, and judges what they do.

    >>> from pytorch_lightning.demos.boring_classes import BoringModel
    >>> audit = AuditCallback(inside=True)
    >>> quiet = dict.fromkeys(["logger", "enable_progress_bar", "enable_model_summary"], False)
    >>> trainer = Trainer(max_steps=3, limit_val_batches=0, callbacks=[audit], **quiet)
    >>> trainer.fit(BoringModel())
    >>> audit.report().n_steps
    3

    Each `fit` is an audit of its own, whose steps count from 0. Only training counts: sanity
    checks, validation, test and prediction are not looked at.
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin."""
        self._begin(pl_module, trainer.optimizers, keeps=trainer.is_global_zero)

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer
    ) -> None:
        """Look at gradients that are not finite, before they are clipped and used."""
        self._look_in_closure()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop a training that cannot recover."""
        if self._is_lost():
            trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End."""
        self._end()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """End, without the step that was broken off."""
        self._end(exception)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """End where a tuner has left the training halfway."""
        self._end()

"""`AuditCallback` of Transformers.

A `Trainer` tells its callbacks nothing of errors and Ctrl-C; `Loop` finds out.
"""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from soma.integrations._callback import Auditing
from soma.integrations._training import Loop


class AuditCallback(Auditing, TrainerCallback):
    """Watches the parts of a model while a `Trainer` trains it, and judges what they do.

        audit = AuditCallback(inside=True)  # docs/interop.md has it in full
        Trainer(model, arguments, train_dataset=data, callbacks=[audit]).train()
        print(audit.report())

    Each `train` is an audit of its own, whose steps count from 0; evaluation is not looked at.
    After an error the hooks are gone once the callback is asked, the model is called, or the run
    that was given has ended.
    """

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Begin."""
        self._begin(
            kwargs["model"],
            [kwargs["optimizer"]],
            keeps=state.is_world_process_zero,
            loop=Loop("_inner_training_loop"),
        )

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Stop a training that cannot recover."""
        if self._is_lost():
            control.should_training_stop = True

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """End."""
        self._end()

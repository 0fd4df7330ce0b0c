"""`Auditing`: what the callbacks for all training libraries have in common.

Each of them says when a training begins and ends; `_training.py` holds the audit in between.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from weakref import finalize

from torch import nn

from soma.audit import Audit, AuditScope, ChannelConfig, audit_modules
from soma.errors import InvalidInput, NotFitted, SomaWarning
from soma.health import (
    AuditReport,
    Finding,
    Thresholds,
    judge,
    measurements_from_rows,
    measurements_to_rows,
)
from soma.integrations._parts import parts_of
from soma.integrations._training import Loop, Training
from soma.tracking import Run, track_run


class Auditing:
    """An audit of whatever is trained next."""

    # Stored as they come and judged when a training begins, as scikit-learn wants it.
    def __init__(
        self,
        modules: Iterable[str] | None = None,
        *,
        thresholds: "Thresholds | Mapping[str, float] | None" = None,
        inside: "bool | int | str | Sequence[str] | AuditScope | Mapping[str, Any]" = False,
        channels: "bool | ChannelConfig" = False,
        budget: float | None = 0.05,
        run: Run | None = None,
        root: str | os.PathLike[str] | None = None,
        on_finding: Callable[[Finding], object] | None = None,
        stop_when_lost: bool = False,
    ) -> None:
        """Say what is watched.

        Args:
            modules: dotted names of submodules; by default the children of the model.
            thresholds: other limits than the usual ones, by name.
            inside: which submodules of these are watched too: True, a depth, patterns, or these
                by name.
            channels: look at each channel of outputs.
            budget: the share of the time that later steps may cost; None measures every step
                whole.
            run: keeps the numbers and the flags in its directory, as `soma.track_run` gives it.
            root: where each training begins a run of its own, named like the model's class.
            on_finding: is called with each new finding; what it raises ends the training.
            stop_when_lost: end a training that can certainly not recover, in the way that the
                library has for it, with a warning that says why.
        """
        self.modules = modules
        self.thresholds = thresholds
        self.inside = inside
        self.channels = channels
        self.budget = budget
        self.run = run
        self.root = root
        self.on_finding = on_finding
        self.stop_when_lost = stop_when_lost
        self._training: Training | None = None
        self._finalizer: finalize[..., Any] | None = None
        self._rows: list[dict[str, Any]] | None = None  # in a copy, what the original measured

    @property
    def audit(self) -> Audit:
        """The audit of the latest training, also while it goes on.

        Raises:
            NotFitted: none has begun, or this is a copy, which has the report alone.
        """
        if self._training is None:
            raise NotFitted(
                "nothing was trained with this callback yet, or it is a copy of one that was "
                "used. Give it to a trainer and train; `report()` works in copies too."
            )
        self._training.end_if_over()
        return self._training.audit

    def report(self) -> AuditReport:
        """Return the verdict on the latest training, so far or as a whole.

        Raises:
            NotFitted: none has begun.
        """
        if self._rows is None:
            return self.audit.report()
        measured = measurements_from_rows(self._rows)
        return AuditReport(judge(measured, Thresholds.of(self.thresholds)))

    def __getstate__(self) -> dict[str, object]:
        """Return the options and all numbers so far; an audit is not copied, nor its hooks."""
        rows = self._rows
        if self._training is not None:
            rows = list(measurements_to_rows(self.audit.measurements))
        return {**vars(self), "_training": None, "_finalizer": None, "_rows": rows}

    def _begin(
        self,
        model: nn.Module,
        optimizers: Iterable[object],
        *,
        keeps: bool = True,
        loop: Loop | None = None,
    ) -> None:
        """Begin an audit, after the end of the one before.

        Args:
            model: what is trained.
            optimizers: what trains it.
            keeps: this is the process that writes.
            loop: what is running, where nobody tells of its errors.
        """
        self._end()
        if self.run is not None and self.root is not None:
            raise InvalidInput("`run` and `root` are both given; one place for the numbers is.")
        run = self.run if keeps else None
        with ExitStack() as stack:
            if self.root is not None and keeps:
                run = stack.enter_context(track_run(type(model).__name__, root=self.root))
            audit = stack.enter_context(
                audit_modules(
                    parts_of(model, self.modules),
                    list(optimizers),
                    thresholds=self.thresholds,
                    inside=self.inside,
                    channels=self.channels,
                    budget=self.budget,
                    run=run,
                )
            )
            training = Training(audit, stack.pop_all(), loop)
        training.watch_loop(model)
        if run is not None:
            run.at_end(training.end)
        if self.on_finding is not None:
            audit.on_finding(self.on_finding)
        if self.stop_when_lost:
            audit.stop_when_lost(training.lose)
        self._training, self._rows = training, None
        self._finalizer = finalize(self, training.end)

    def _end(self, error: BaseException | None = None) -> None:
        """End the audit, if one is under way."""
        if self._finalizer is not None and self._training is not None:
            self._finalizer.detach()
            self._training.end(error)

    def _look_in_closure(self) -> None:
        """Look where a NaN comes from, right after a backward."""
        if self._training is not None:
            self._training.audit.look_in_closure()

    def _is_lost(self) -> bool:
        """Whether the training should stop, with a warning that says why."""
        training = self._training
        if training is None or training.lost is None:
            return False
        warnings.warn(f"training is stopped: {training.lost}", SomaWarning, stacklevel=3)
        return True

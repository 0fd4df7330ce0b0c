"""`Audit`: what a user holds while modules are watched, and afterwards."""

from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite
from time import perf_counter
from typing import NoReturn

from soma.audit._processes._ranks import measured_by_all
from soma.audit._record import AuditRecord
from soma.audit._replaced import mark_replaced
from soma.audit._step._recorder import Recorder
from soma.errors import GradientHealthError, InvalidInput, TrainingLost
from soma.health import AuditReport, Finding, Measurements, Series, Thresholds, judge, lost
from soma.tracking import Run

OnFinding = Callable[[Finding], object]

_REST = 20.0  # between two looks of the rules at all numbers, in times of what the last one took


class Audit:
    """The numbers of one audit, and what they say about each module.

    It is made by `Graph.gradient_audit` and `soma.audit_modules`, and can be asked at any time,
    inside their `with` and after it.
    """

    def __init__(
        self, recorder: Recorder, thresholds: "Thresholds | Mapping[str, float] | None"
    ) -> None:
        self._recorder = recorder
        self._thresholds = Thresholds.of(thresholds)
        self._listeners: list[OnFinding] = []
        self._told: set[tuple[str, str]] = set()
        self._records: list[AuditRecord] = []
        self._next_look = 0.0
        self._alarmed = False

    def keep_in(self, run: Run) -> None:
        """Keep all numbers in a run's directory, step by step, and the flags at the end.

        Raises:
            InvalidInput: what was given is no run.
        """
        if not isinstance(run, Run):
            raise InvalidInput(
                f"`run` is {run!r:.80}; a run that goes on is wanted, as "
                "`with soma.track_run(...) as run:` gives it."
            )
        record = AuditRecord(run, self._recorder.measurements, self._thresholds, self._bring)
        self._records.append(record)
        self._recorder.on_step.append(record.stepped)

    def end(self) -> None:
        """Close the records; the audit itself can be asked on."""
        for record in self._records:
            record.end()
        if self._records:
            self.report()
        self._records.clear()

    @property
    def measurements(self) -> Measurements:
        """Everything measured so far, as plain numbers; `soma.health.judge` takes them."""
        recorder = self._recorder
        if not recorder.is_closed:
            recorder.bring()
            recorder.read()
            mark_replaced(recorder)
        recorder.settler.describe()
        return recorder.measurements

    def report(self) -> AuditReport:
        """Return the verdict on all that was measured so far."""
        report = AuditReport(judge(self.measurements, self._thresholds))
        for record in self._records:
            record.write_health(report)
        return report

    def report_of_all_ranks(self, timeout: float = 60.0) -> AuditReport:
        """Return the verdict on the numbers of all ranks of a data-parallel training.

        Every rank calls it, once each time, also where its own training has failed. One that
        does not come is named in a note, after a wait that has an end; so are ranks that differ.
        `report` goes on telling of this rank alone.

        Args:
            timeout: seconds to wait for the other ranks; all ranks give the same.

        Raises:
            ModeError: `torch.distributed` is not initialised.
        """
        return AuditReport(judge(measured_by_all(self.measurements, timeout), self._thresholds))

    def assert_healthy(self) -> None:
        """Return quietly if nothing is wrong.

        Raises:
            GradientHealthError: something is; the message is the report.
        """
        report = self.report()
        if not report.is_healthy():
            raise GradientHealthError(report.pretty())

    def records(self) -> list[dict[str, object]]:
        """Return a row for each unit and step, with the numbers measured there."""
        rows: dict[tuple[int, str], dict[str, object]] = {}
        for unit, by_name in self.measurements.series.items():
            for name, series in by_name.items():
                for step, value in zip(series.steps, series.values, strict=True):
                    row = rows.setdefault((step, unit), {"step": step, "filter_id": unit})
                    row[name] = value
        return [rows[key] for key in sorted(rows, key=lambda key: key[0])]

    def timeseries(self, id: str) -> dict[str, Series]:
        """Return every number of one unit over the steps, by name; ids are as in `records`."""
        series = self.measurements.series
        if id not in series:
            raise KeyError(
                f"nothing was measured of {id!r}; there is {', '.join(map(repr, series))}"
            )
        return dict(series[id])

    def on_finding(self, callback: OnFinding) -> None:
        """Call `callback(finding)` when something new is found, after the step that shows it.

        What the callback raises ends the training loop at that step. All rules are asked at a
        gradient that is not finite, and else as often as takes a twentieth of the time.
        """
        if not self._listeners:
            self._recorder.on_step.append(self._look)
        self._listeners.append(callback)

    def stop_when_lost(self, stop: Callable[[str], object] | None = None) -> None:
        """End the training loop by an error as soon as it can certainly not recover.

        That is when the optimizer has used a gradient that is not finite, or every gradient has
        been exactly zero for five steps. The error is raised right after the step.

        Args:
            stop: is called with the reason after each such step, in place of the error.

        Raises:
            TrainingLost: from the loop; the message says why, and where it began if that is known.
        """
        self._recorder.on_step.append(partial(self._stop_if_lost, stop or _raise_lost))

    def look_in_closure(self) -> None:
        """Look where a NaN comes from, inside an optimizer's step that has run the backward.

        Callbacks of training libraries call it, which run the loss inside `optimizer.step`.
        """
        self._recorder.guarded(None, self._recorder.closure_ran)

    def _stop_if_lost(self, stop: Callable[[str], object]) -> None:
        reason = lost(self._recorder.measurements)
        if reason is not None:
            self._bring()
            began = [
                f" It began in {origin.unit or 'the loss'}: {origin.detail}."
                for origin in self._recorder.measurements.origins[:1]
            ]
            stop("".join((reason, ".", *began)))

    def _look(self) -> None:
        began = perf_counter()
        steps = self._recorder.measurements.steps
        # Only the first of such steps: all that follow are its doing.
        alarm = not self._alarmed and steps and not isfinite(steps[-1].grad_norm)
        self._alarmed |= bool(alarm)
        if began < self._next_look and not alarm:
            return
        self._tell()
        ended = perf_counter()
        self._next_look = ended + _REST * (ended - began)

    def _bring(self) -> None:
        """Fetch what was measured in other processes."""
        self._recorder.bring()

    def _tell(self) -> None:
        self._bring()
        for finding in judge(self._recorder.measurements, self._thresholds).findings:
            key = (finding.unit, finding.name)
            if key not in self._told:
                self._told.add(key)
                for callback in tuple(self._listeners):
                    callback(finding)


def _raise_lost(reason: str) -> NoReturn:
    raise TrainingLost(reason)

"""`trial_run`: a trial of a study as a tracked run, with an audit that may end it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import isnan
from os import PathLike
from typing import Any, NoReturn, TypeGuard

from optuna import Study, TrialPruned
from optuna.trial import BaseTrial

from soma.core import has_module
from soma.errors import TrainingLost
from soma.health import NEUTRAL
from soma.integrations.optuna._fault import HEALTH, PRUNED, RUN, Fault
from soma.integrations.optuna._pruner import HealthPruner, nan_reported
from soma.tracking import Run

_MOST = 8  # faults that a study keeps of a trial


class TrialRun:
    """What an objective holds while its trial goes on; made by `trial_run`.

    `run` is the run, `audit` the audit of its modules, or None where the graph has none.
    """

    def __init__(self, trial: BaseTrial, run: Run, audit: Any) -> None:
        self.run = run
        self.audit = audit
        self._trial = trial
        self._faults: list[Fault] = []

    def report(self, value: float, step: int) -> None:
        """Tell the study a value, keep it in the run, and end the trial if its pruner says so.

        Raises:
            TrialPruned: the pruner ends the trial, which Optuna expects.
        """
        number = float(value)
        self.run.log("value", number, step)
        self._trial.report(number, step)
        self.judge()
        if self._trial.should_prune():
            pruner = _pruner_of(self._trial)
            fatal = self._fatal()
            if _is_ours(pruner) and (fatal is not None or isnan(number)):
                self._end(fatal or nan_reported(step))
            inner = type(getattr(pruner, "inner", pruner)).__name__
            raise TrialPruned(f"at step {step} by `{inner}`, with a value of {number}")

    def judge(self) -> None:
        """Write into the study what the audit finds now."""
        if self.audit is not None:
            found = self.audit.report().findings
            self._keep([Fault.of(one) for one in found if one.name not in NEUTRAL])

    def ends_as_lost(self, error: TrainingLost) -> NoReturn:
        """End a trial whose training can certainly not recover.

        Raises:
            TrialPruned: always.
        """
        self.judge()
        step = len(self.audit.measurements.steps) - 1
        lost = Fault(flag="LOST", node=None, since=step, certainty="certain", why=str(error))
        self._end(self._fatal() or next(iter(self._faults), lost))

    def _fatal(self) -> Fault | None:
        pruner = _pruner_of(self._trial)
        return next(filter(pruner.is_fatal, self._faults), None) if _is_ours(pruner) else None

    def _keep(self, faults: list[Fault]) -> None:
        if faults != self._faults:
            self._faults = faults
            self._trial.set_user_attr(HEALTH, [one.data() for one in faults[:_MOST]])

    def _end(self, fault: Fault) -> NoReturn:
        self._trial.set_user_attr(PRUNED, fault.data())
        raise TrialPruned(str(fault))


@contextmanager
def trial_run(
    trial: BaseTrial, graph: Any, *, root: str | PathLike[str] = ".soma"
) -> Iterator[TrialRun]:
    """Keep what a trial does inside a `with` as a run, and watch the health of its modules.

    The run is called `study #number`, is tagged with the study's name and `minimize` or `maximize`,
    and has the values that the trial has drawn. An error leaves
    it `failed`, a pruner `interrupted`, with the reason. Faults come into the study as attributes
    of the trial, at each report and at the end: all in `soma.health`, the one that ended it in
    `soma.pruned`, each with flag, node, since which step, how sure, why. `soma.run` is the id.

    Between two reports a `HealthPruner` ends only what can certainly not recover.

    Args:
        trial: of a study that goes on; or one without a study, to try an objective, as
            `optuna.trial.FixedTrial` and `study.best_trial` are.
        graph: what `suggest` gave.
        root: the folder of the runs' folder.
    """
    study = getattr(trial, "study", None)
    name = "trial" if study is None else study.study_name
    with ExitStack() as stack:
        run = stack.enter_context(
            graph.track_run(
                f"{name} #{trial.number}",
                kind="trial",
                tags=[name, *_goal(getattr(trial, "study", None))],
                params=trial.params,
                root=root,
            )
        )
        run.interrupted_by(TrialPruned)
        trial.set_user_attr(RUN, run.id)
        audit = None
        if any(has_module(filter) for _, filter in graph.filters()):
            audit = stack.enter_context(graph.gradient_audit(inside=True, channels=True))
        told = TrialRun(trial, run, audit)
        if audit is not None and _is_ours(_pruner_of(trial)):
            audit.stop_when_lost()
        try:
            yield told
        except TrainingLost as error:
            told.ends_as_lost(error)
        told.judge()


def _goal(study: Study | None) -> list[str]:
    """Return what readers of runs go by; a study of several values has no single goal."""
    if study is None or len(study.directions) > 1:
        return []
    return [study.direction.name.lower()]


def _pruner_of(trial: BaseTrial) -> object:
    return getattr(getattr(trial, "study", None), "pruner", None)


def _is_ours(pruner: object) -> TypeGuard[HealthPruner]:
    return isinstance(pruner, HealthPruner)

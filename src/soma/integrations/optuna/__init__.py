"""Studies of Optuna over a graph: values from a trial, its run, and an end for sick ones.

`suggest` makes the graph of a trial, `trial_run` keeps its run, `HealthPruner` stops it when its
modules cannot learn any more.
"""

from typing import TYPE_CHECKING

from soma import _extras

if TYPE_CHECKING:
    from soma.integrations.optuna._pruner import HealthPruner
    from soma.integrations.optuna._suggest import suggest
    from soma.integrations.optuna._trial_run import TrialRun, trial_run

_LATE = {
    "HealthPruner": "_pruner",
    "TrialRun": "_trial_run",
    "suggest": "_suggest",
    "trial_run": "_trial_run",
}

__all__ = ["HealthPruner", "TrialRun", "suggest", "trial_run"]

__getattr__ = _extras.late(__name__, _LATE, extra="optuna")

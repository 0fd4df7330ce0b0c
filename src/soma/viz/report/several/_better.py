"""Which of two values of a metric is the better one, where that can be known."""

import re
from collections.abc import Iterable
from typing import Literal

from soma.tracking import Manifest

Better = Literal["least", "greatest"]

_WORDS = re.compile(r"[^a-z0-9]+")
_LEAST = {"loss", "error", "err", "mse", "rmse", "mae", "mape", "nll", "perplexity", "wer", "cer"}
_GREATEST = {
    "accuracy",
    "acc",
    "score",
    "f1",
    "auc",
    "r2",
    "precision",
    "recall",
    "iou",
    "dice",
    "reward",
}
# What `soma.integrations.optuna.trial_run` writes of a study, and the metric that it is about.
_GOALS: dict[str, Better] = {"minimize": "least", "maximize": "greatest"}
_VALUE = "value"


def better(metric: str, runs: Iterable[Manifest]) -> Better | None:
    """Return which values of a metric are better, by its name or by the goal of a study.

    Args:
        runs: those that have logged it.
    """
    if metric == _VALUE:
        goals = {_goal(run) for run in runs}
        return goals.pop() if len(goals) == 1 else None
    words = set(_WORDS.split(metric.lower()))
    if bool(words & _LEAST) == bool(words & _GREATEST):
        return None
    return "least" if words & _LEAST else "greatest"


def _goal(run: Manifest) -> Better | None:
    if run.kind != "trial":
        return None
    return next((_GOALS[tag] for tag in run.tags if tag in _GOALS), None)

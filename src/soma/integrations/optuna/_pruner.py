"""`HealthPruner`: ends trials whose modules cannot learn any more.

`_trial_run.py` tells it, through the attributes of the trial, what an audit has found.
"""

from collections.abc import Iterable
from math import isnan
from typing import TYPE_CHECKING

from optuna.pruners import BasePruner

from soma.errors import InvalidInput, UnknownFlag, did_you_mean, listing
from soma.health import flags as known_flags
from soma.integrations.optuna._fault import HEALTH, Fault

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

# What a trial does not get over by itself, and another one may not have.
FATAL = ("NAN", "INF", "EXPLODING", "DEAD", "VANISHING")


class HealthPruner(BasePruner):
    """A pruner that ends a trial when it reports a value and something in it is certainly sick.

    A reported NaN ends a trial too, whatever the other pruner would make of it, and so does a
    training that can certainly not recover, at once.

    >>> import optuna
    >>> from soma.integrations.optuna import HealthPruner
    >>> study = optuna.create_study(pruner=HealthPruner(optuna.pruners.MedianPruner()))

    Args:
        inner: asked as well; a trial ends when either says so.
        flags: which findings end a trial, as `soma explain` lists them.

    Raises:
        UnknownFlag: a flag that no rule gives.
    """

    def __init__(self, inner: BasePruner | None = None, *, flags: Iterable[str] = FATAL) -> None:
        if inner is not None and not isinstance(inner, BasePruner):
            raise InvalidInput(
                f"`inner` is {inner!r}; a pruner of Optuna is wanted, such as "
                "`optuna.pruners.MedianPruner()`."
            )
        self.inner = inner
        self.flags = (flags,) if isinstance(flags, str) else tuple(flags)
        for flag in self.flags:
            if flag not in known_flags():
                raise UnknownFlag(
                    f"no rule gives the flag {flag!r}; there are {listing(known_flags(), most=99)}."
                    f"{did_you_mean(str(flag), known_flags())}"
                )

    def prune(self, study: "Study", trial: "FrozenTrial") -> bool:
        """Return whether health or the inner pruner ends the trial."""
        if self.reason(trial) is not None:
            return True
        return self.inner is not None and self.inner.prune(study, trial)

    def reason(self, trial: "FrozenTrial") -> Fault | None:
        """Return the fault that ends a trial; None while health does not."""
        found = map(Fault.read, trial.user_attrs.get(HEALTH, ()))
        fatal = next(filter(self.is_fatal, found), None)
        step = trial.last_step
        if fatal is not None or step is None or not isnan(trial.intermediate_values[step]):
            return fatal
        return nan_reported(step)

    def is_fatal(self, fault: Fault) -> bool:
        """Return whether a fault ends its trial."""
        return fault.name in self.flags and fault.certainty == "certain"


def nan_reported(step: int) -> Fault:
    """Return the fault of a trial that has reported NaN."""
    return Fault(
        flag="NAN", node=None, since=step, certainty="certain", why="the reported value is NaN"
    )

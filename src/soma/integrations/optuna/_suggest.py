"""`suggest`: a graph with the values that a trial draws."""

from typing import TypeVar

from optuna.trial import BaseTrial

from soma.core import Choice, Searchable, Space, apply_params, search_space

G = TypeVar("G", bound=Searchable)


def suggest(trial: BaseTrial, graph: G) -> G:
    """Return the graph, unfitted, with the values of a trial for all that is searched in it.

    The trial calls them `node.attribute`; the graph given stays as it is. With the best trial of a
    study, `suggest(study.best_trial, graph)`, it is the best graph again, to be fitted.
    """
    space = search_space(graph)
    return apply_params(graph, {name: _drawn(trial, name, one) for name, one in space.items()})


def _drawn(trial: BaseTrial, name: str, space: Space) -> object:
    if isinstance(space, Choice):
        return trial.suggest_categorical(name, space.choices)  # type: ignore[arg-type]
    if isinstance(space.low, int) and isinstance(space.high, int):
        step = int(space.step or 1)
        return trial.suggest_int(name, space.low, space.high, step=step, log=space.log)
    return trial.suggest_float(name, space.low, space.high, step=space.step, log=space.log)

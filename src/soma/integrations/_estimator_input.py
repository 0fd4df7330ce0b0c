"""What reaches a graph that is an estimator: checked as scikit-learn does, or left to filters."""

from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from soma.core import Inputs, has_module
from soma.integrations._sklearn import Estimator


def checked_input(
    estimator: Any, graph: Any, x: Any, *, fitting: bool = False, without_targets: bool = False
) -> Any:
    """Return the data as the graph is to get it; note or compare the names of its features.

    Frames, texts and records are for plain filters to read. All else is checked to be an array of
    finite numbers; estimators at the roots look for texts and NaN themselves.

    Args:
        without_targets: refuse it where targets are needed.
    """
    y = None if without_targets else "no_validation"
    if _passes_as_it_is(graph, x):
        validate_data(estimator, x, y, reset=fitting, skip_check_array=True)
        return x
    estimators_read = all(isinstance(one, Estimator) for one in _roots(graph))
    return validate_data(
        estimator,
        x,
        y,
        reset=fitting,
        allow_nd=True,
        accept_sparse=get_tags(estimator).input_tags.sparse,
        dtype=None if estimators_read else "numeric",
        ensure_all_finite=not estimators_read,
    )


def set_input_tags(tags: Any, graph: Any) -> None:
    """Say what a graph takes, as its estimators do."""
    tags.allow_nan = _all_accept("allow_nan", [filter for _, filter in graph.filters()])
    for name in ("sparse", "string", "categorical"):
        setattr(tags, name, _all_accept(name, _roots(graph)))


def _roots(graph: Any) -> list[Any]:
    return [graph.filter(root) for root in graph.roots()]


def _all_accept(what: str, filters: list[Any]) -> bool:
    """Whether all filters are estimators with a tag for an input of some kind."""
    return all(
        isinstance(one, Estimator) and getattr(get_tags(one.estimator).input_tags, what)
        for one in filters
    )


def _passes_as_it_is(graph: Any, x: Any) -> bool:
    """Whether the input is something that plain filters read: a frame, texts, records."""
    if isinstance(x, Inputs):
        return True
    if any(has_module(one) for one in _roots(graph)):
        return False
    first = x[0] if isinstance(x, list | tuple | np.ndarray) and len(x) else None
    return hasattr(x, "columns") or isinstance(first, str | bytes | dict)

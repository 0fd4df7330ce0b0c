"""The parameters of the filters in a graph, as `node__parameter`, for scikit-learn's searches."""

from collections.abc import Mapping
from typing import Any

from soma._extras import require
from soma.core import Filter, parameters_of, remade
from soma.errors import InvalidInput, did_you_mean
from soma.integrations._sklearn import Estimator


def filter_params(graph: Any) -> dict[str, object]:
    """Return every parameter of every filter: `{"dense__width": 32, "scale__with_mean": True}`."""
    return {
        f"{id}__{name}": value
        for id, filter in graph.filters()
        for name, value in _params_of(filter).items()
    }


def with_params(graph: Any, changes: Mapping[str, object]) -> Any:
    """Return the graph, unfitted, with other parameters in some filters.

    Raises:
        InvalidInput: a name that none of the filters has.
    """
    by_node: dict[str, dict[str, object]] = {}
    known = {f"{id}__{name}": (id, name) for id, one in graph.filters() for name in _params_of(one)}
    for key, value in changes.items():
        if key not in known:
            raise InvalidInput(
                f"invalid parameter {key!r}: no filter of this graph has it."
                f"{did_you_mean(key, known)} `get_params()` lists them all."
            )
        id, name = known[key]
        by_node.setdefault(id, {})[name] = value
    return graph.unfitted({id: _changed(graph.filter(id), them) for id, them in by_node.items()})


def _params_of(filter: Filter) -> dict[str, object]:
    if isinstance(filter, Estimator):
        return dict(filter.estimator.get_params())
    return parameters_of(filter)


def _changed(filter: Filter, changes: Mapping[str, object]) -> Filter:
    if not isinstance(filter, Estimator):
        return remade(filter, changes)
    estimator = require("sklearn.base", extra="sklearn").clone(filter.estimator)
    return type(filter)(estimator.set_params(**changes), filter.method)

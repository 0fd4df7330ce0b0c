"""What a graph is to scikit-learn: a classifier, a regressor or a transformer."""

from typing import Any, Literal, get_args

import numpy as np

from soma._extras import require
from soma.core import has_module
from soma.errors import InvalidInput, listing
from soma.integrations._sklearn import Estimator

Kind = Literal["classifier", "regressor", "transformer"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Losses of torch, as a class and as a function, without `Loss` and `_`.
_OF_CLASSES = {
    "bce", "bcewithlogits", "binarycrossentropy", "binarycrossentropywithlogits", "crossentropy",
    "multimargin", "nll",
}  # fmt: skip
_OF_VALUES = {"gaussiannll", "huber", "l1", "mse", "poissonnll", "smoothl1"}


def the_leaf(graph: Any) -> Any:
    """Return the filter of the one leaf.

    Raises:
        InvalidInput: what was given is no graph, or has several leaves.
    """
    if not hasattr(graph, "unfitted") or not hasattr(graph, "leaves"):
        raise InvalidInput(
            f"`as_estimator` got a `{type(graph).__name__}`; a graph is wanted, such as "
            "`Graph.somatize(StandardScaler() >> Dense())`."
        )
    leaves = graph.leaves()
    if len(leaves) != 1:
        raise InvalidInput(
            f"this graph has {len(leaves)} leaves ({listing(leaves) or 'none'}); an estimator of "
            "scikit-learn has one output. Leave branches out, or join them in one filter."
        )
    return graph.filter(leaves[0])


def kind_of_graph(graph: Any, loss: object) -> Kind | None:
    """Return what leaf and loss tell; None where only targets can."""
    leaf = the_leaf(graph)
    if isinstance(leaf, Estimator):
        base: Any = require("sklearn.base", extra="sklearn")
        if base.is_classifier(leaf.estimator):
            return "classifier"
        return "regressor" if base.is_regressor(leaf.estimator) else "transformer"
    if not any(has_module(filter) for _, filter in graph.filters()):
        return "transformer"
    name = getattr(loss, "__name__", type(loss).__name__).lower().replace("_", "")
    name = name.removesuffix("loss")
    if name in _OF_CLASSES:
        return "classifier"
    return "regressor" if name in _OF_VALUES else None


def kind_of_targets(y: object) -> Kind:
    """Return what targets tell: floats are values, all else is classes, none are to be learned."""
    if y is None:
        return "transformer"
    return "regressor" if np.asarray(y).dtype.kind == "f" else "classifier"

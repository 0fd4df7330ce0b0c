"""From what a graph gives to labels, probabilities and values."""

from typing import Any

import numpy as np

from soma.errors import InvalidInput, InvalidOutput
from soma.integrations._arrays import to_arrays

Array = np.ndarray[Any, Any]


def answer(graph: Any, x: object) -> Array:
    """Return the output of a graph as an array of numbers.

    Raises:
        InvalidInput: NaN came out, which no label or value can be made of.
    """
    array = np.asarray(to_arrays(graph.forward(x)))
    if array.dtype.kind not in "biuf":
        raise InvalidOutput(
            f"the graph gives {array.dtype} of shape {array.shape}; numbers are wanted, a row for "
            "each sample."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidInput(
            "the graph gives NaN or infinity for some rows. Look for it in the input, or in the "
            "losses of `graph_.history`."
        )
    return array


def as_labels(scores: Array, classes: Array) -> Array:
    """Return the label of each row: of the highest score, or of the sign of a single one."""
    single = _single_score(scores)
    if scores.dtype.kind in "biu" and scores.ndim == 1:  # a classifier at the leaf has decided
        chosen = scores
    elif single is None:
        chosen = scores[:, : len(classes)].argmax(axis=1)
    else:
        chosen = (single > 0).astype(int) if len(classes) > 1 else np.zeros(len(single), int)
    labels: Array = classes[chosen]
    return labels


def as_probabilities(scores: Array, classes: Array, *, ready: bool) -> Array:
    """Return a column of probabilities for each class.

    Args:
        ready: the scores are probabilities already, not logits.
    """
    scores = scores.astype(np.float64)
    single = _single_score(scores)
    if len(classes) == 1:
        return np.ones((len(scores), 1))
    if single is not None:
        high = 1 / (1 + np.exp(-np.clip(single, -700, 700)))
        return np.stack([1 - high, high], axis=1)
    scores = scores[:, : len(classes)]
    if ready:
        return scores
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _single_score(scores: Array) -> Array | None:
    if scores.ndim == 1:
        return scores
    return scores[:, 0] if scores.shape[1] == 1 else None

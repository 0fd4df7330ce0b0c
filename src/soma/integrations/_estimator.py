"""`soma.as_estimator`: a graph as an estimator of scikit-learn.

`_estimator_kind.py` finds out what kind of estimator a graph is, `_estimator_params.py` gives
searches the parameters of its filters, `_estimator_answers.py` makes labels of its output.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import (
    ClassifierTags,
    RegressorTags,
    TransformerTags,
    check_consistent_length,
    check_random_state,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from soma.core import Inputs, has_module
from soma.errors import InvalidInput, listing
from soma.integrations._arrays import to_arrays
from soma.integrations._estimator_answers import answer, as_labels, as_probabilities
from soma.integrations._estimator_input import checked_input, set_input_tags
from soma.integrations._estimator_kind import (
    KINDS,
    Kind,
    kind_of_graph,
    kind_of_targets,
    the_leaf,
)
from soma.integrations._estimator_params import filter_params, with_params
from soma.integrations._sklearn import Estimator


def as_estimator(
    graph: object,
    *,
    kind: Kind | None = None,
    epochs: int = 10,
    batch_size: int = 64,
    loss: object = None,
    optimizer: Callable[..., object] | None = None,
    scheduler: Callable[..., object] | None = None,
    clip: float | None = None,
    random_state: Any = None,
) -> "GraphEstimator":
    """Return an estimator of scikit-learn around a graph, for searches, validation and pipelines.

    Each `fit` trains the graph made anew, `graph_`; the one given stays as it is. Parameters of its
    filters are reached by node: `set_params(dense__width=64, scale__with_mean=False)`.

    >>> import soma
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> g = soma.Graph.somatize(soma.sk(StandardScaler()) >> LogisticRegression())
    >>> x, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> soma.as_estimator(g).fit(x, y).predict([[5.0]])
    array(['yes'], dtype='<U3')

    Args:
        graph: with one leaf. The output of a classifier is a score for each class, or one score
            for two classes, before softmax or sigmoid.
        kind: `"classifier"`, `"regressor"` or `"transformer"`. By default the leaf tells, or the
            loss, or else the targets in `fit`: floats are values, all others classes. Searches
            stratify their folds for what is known as a classifier before.
        epochs: as in `Graph.fit`, like the others that follow.
        optimizer: makes one of the parameters, such as `functools.partial(Adam, lr=0.01)`.
        random_state: for weights, shuffling, dropout and filters that draw.

    Raises:
        InvalidInput: it is no graph, or has not one leaf.
    """
    the_leaf(graph)
    return GraphEstimator(
        graph,
        kind=kind,
        epochs=epochs,
        batch_size=batch_size,
        loss=loss,
        optimizer=optimizer,
        scheduler=scheduler,
        clip=clip,
        random_state=random_state,
    )


def _answers_as(*kinds: Kind) -> Callable[[Any], bool]:
    """Return whether an estimator may be of one of these kinds."""
    return lambda estimator: estimator._known_kind() in (*kinds, None)


def _is_transformer(estimator: Any) -> bool:
    return bool(estimator._known_kind() == "transformer")


def _tells_probabilities(estimator: Any) -> bool:
    return estimator._known_kind() in ("classifier", None) and estimator._scores_are() is not None


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """What `as_estimator` returns."""

    # Stored as they come and judged in `fit`, as scikit-learn wants it.
    def __init__(
        self,
        graph: Any,
        *,
        kind: Kind | None = None,
        epochs: int = 10,
        batch_size: int = 64,
        loss: object = None,
        optimizer: Callable[..., object] | None = None,
        scheduler: Callable[..., object] | None = None,
        clip: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.graph = graph
        self.kind = kind
        self.epochs = epochs
        self.batch_size = batch_size
        self.loss = loss
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.clip = clip
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; deep ones are those of the filters, `node__parameter`."""
        own: dict[str, Any] = super().get_params(deep=False)
        return {**(filter_params(self.graph) if deep and _is_graph(self.graph) else {}), **own}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of filters give the estimator another, unfitted graph."""
        own = super().get_params(deep=False)
        super().set_params(**{name: value for name, value in params.items() if name in own})
        inner = {name: value for name, value in params.items() if name not in own}
        if inner:
            self.graph = with_params(self.graph, inner)
        return self

    def fit(self, X: Any, y: Any = None, **unknown: object) -> Self:
        """Make the graph anew and fit it.

        Raises:
            InvalidInput: weights of samples, or a parameter that cannot be worked with.
        """
        self._check(unknown)
        graph = clone(self.graph)
        kind = self.kind or kind_of_graph(graph, self.loss) or kind_of_targets(y)
        X = checked_input(self, graph, X, fitting=True, without_targets=y is None)
        targets = y if y is None else self._targets(kind, y)
        if targets is not None and not isinstance(X, Inputs):
            check_consistent_length(X, targets)
        graph.fit(
            X,
            targets,
            epochs=self.epochs,
            batch_size=self.batch_size,
            loss=self.loss,
            optimizer=self.optimizer,
            scheduler=self.scheduler,
            clip=self.clip,
            progress=False,
            seed=self._seed(),
        )
        if graph.history and not np.isfinite(graph.history[-1].loss):
            raise InvalidInput(
                f"training ended with a loss of {graph.history[-1].loss}, so the weights are lost. "
                "Look for NaN or infinity in the data, scale it, or take smaller steps."
            )
        self.kind_, self.graph_ = kind, graph
        return self

    @available_if(_answers_as("classifier", "regressor"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Return the label or the value for each row."""
        output = self._output(X)
        if self.kind_ == "classifier":
            return as_labels(output, self.classes_)
        return output.reshape(len(output)) if self._is_flat else output

    @available_if(_tells_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, in the order of `classes_`."""
        ready = self._scores_are() == "probabilities"
        return as_probabilities(self._output(X), self.classes_, ready=ready)

    @available_if(_is_transformer)  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Return what the graph gives for each row."""
        check_is_fitted(self)
        return to_arrays(self.graph_.forward(checked_input(self, self.graph_, X)))

    @available_if(_is_transformer)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, **unknown: object) -> Any:
        """Return what the graph gives for the data that it is fitted on."""
        return self.fit(X, y, **unknown).transform(X)

    @available_if(_answers_as("classifier", "regressor"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of a classifier, or R² of a regressor."""
        predicted = self.predict(X)
        measure = accuracy_score if self.kind_ == "classifier" else r2_score
        return float(measure(y, predicted))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kind = self._known_kind()
        tags.estimator_type = kind
        tags.target_tags.required = kind in ("classifier", "regressor")
        tags.classifier_tags = ClassifierTags() if kind == "classifier" else None
        tags.regressor_tags = RegressorTags() if kind == "regressor" else None
        tags.transformer_tags = TransformerTags() if kind == "transformer" else None
        if _is_graph(self.graph):
            set_input_tags(tags.input_tags, self.graph)
        return tags

    def _known_kind(self) -> Kind | None:
        kind: Kind | None = getattr(self, "kind_", self.kind)
        if kind is None and _is_graph(self.graph) and len(self.graph.leaves()) == 1:
            return kind_of_graph(self.graph, self.loss)
        return kind

    def _scores_are(self) -> str | None:
        """Say what the leaf's numbers are; None: labels, or nobody knows."""
        leaf = the_leaf(self.graph)
        if has_module(leaf):
            return "logits"
        method = leaf.method if isinstance(leaf, Estimator) else None
        return {"predict_proba": "probabilities", "predict_log_proba": "logits"}.get(method or "")

    def _output(self, X: Any) -> Any:
        check_is_fitted(self)
        return answer(self.graph_, checked_input(self, self.graph_, X))

    def _targets(self, kind: Kind, y: Any) -> Any:
        """Return classes as numbers from 0, values as floats; a transformer's as they are."""
        if kind == "transformer":
            return y
        if kind == "classifier":
            labels = column_or_1d(y, warn=True)
            check_classification_targets(labels)
            self.classes_, numbers = np.unique(labels, return_inverse=True)
            return numbers
        values = check_array(y, ensure_2d=False, dtype=[np.float64, np.float32], input_name="y")
        if values.ndim == 2 and values.shape[1] == 1:
            values = column_or_1d(values, warn=True)
        self._is_flat = values.ndim == 1
        return values

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check(self, unknown: dict[str, object]) -> None:
        the_leaf(self.graph)
        if self.kind is not None and self.kind not in KINDS:
            raise InvalidInput(f"`kind` is {self.kind!r}; {listing(KINDS)} are known, or None.")
        if hasattr(self.optimizer, "param_groups"):
            raise InvalidInput(
                "`optimizer` is an optimizer of other weights, since each `fit` builds new ones. "
                "Give what makes it: `functools.partial(torch.optim.SGD, lr=0.1)`."
            )
        if unknown:
            raise InvalidInput(
                f"`fit` got {listing(unknown)}, and a graph knows data and targets only. Weigh "
                "samples or classes inside `loss`, or repeat rows."
            )


def _is_graph(value: object) -> bool:
    return hasattr(value, "unfitted")

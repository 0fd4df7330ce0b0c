"""An estimator of scikit-learn as a filter: what it is given, what it answers, what it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from torch import nn

import soma
from soma.cache import identity
from soma.errors import NotAFilter
from tests.integrations.estimators import (
    FRAME,
    KEPT_IN_MEMORY,
    STORED,
    TEXTS,
    Centre,
    X,
    Y,
    columns,
)

ALL = {**STORED, **KEPT_IN_MEMORY}


class Dense(soma.DifferentiableFilter):
    """One linear layer with two outputs."""

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Linear(input_shape[-1], 2)


class Given(StandardScaler):  # type: ignore[misc]
    """Notes what it was given."""

    seen: Any = None

    def fit(self, X: Any, y: Any = None) -> Any:
        type(self).seen = (X, y)
        return self

    def transform(self, X: Any) -> Any:
        return X


def dense(value: Any) -> Any:
    """Return a sparse matrix as an array."""
    return value.toarray() if hasattr(value, "toarray") else value


@pytest.mark.parametrize("name", ALL)
def test_it_answers_as_the_estimator_alone(name: str) -> None:
    """A filter around an estimator gives what the estimator gives."""
    make, data = ALL[name]
    alone = make().fit(data, Y)
    judges = hasattr(alone, "predict")
    expected = alone.predict(data) if judges else alone.transform(data)

    answer = soma.Graph.somatize(soma.sk(make())).fit(data, Y).forward(data)

    assert type(answer) is type(expected)
    assert np.array_equal(dense(answer), dense(expected))


@pytest.mark.parametrize("x", [X.tolist(), torch.tensor(X), [torch.tensor(row) for row in X]])
def test_tensors_and_lists_become_arrays(x: Any) -> None:
    """An estimator is given arrays of the same numbers, labels as well."""
    soma.sk(Given()).fit(x, torch.tensor(Y))
    given, labels = Given.seen

    assert isinstance(given, np.ndarray)
    assert np.array_equal(given, X)
    assert np.array_equal(labels, Y)


@pytest.mark.parametrize("x", [TEXTS, [["a"], ["b"]], [[1, 2], [3]], [{"a": 1}], FRAME])
def test_texts_records_and_frames_stay_as_they_are(x: Any) -> None:
    """What is no list of numbers is for the estimator to read."""
    soma.sk(Given()).fit(x)
    given, _ = Given.seen

    assert type(given) is type(x)
    assert given.equals(x) if x is FRAME else given == x


@pytest.mark.parametrize(
    "tensor", [torch.ones(2, 1, dtype=torch.bfloat16), torch.ones(2, 1, requires_grad=True)]
)
def test_every_dense_tensor_has_an_array(tensor: torch.Tensor) -> None:
    """Tensors that ask for gradients or have no counterpart in NumPy are read too."""
    answer = soma.Graph.somatize(soma.sk(StandardScaler())).fit(tensor).forward(tensor)

    assert answer.tolist() == [[0.0], [0.0]]


def test_frames_keep_the_names_of_their_features() -> None:
    """A frame reaches the estimator with its names, and comes back as scikit-learn says."""
    g = soma.Graph.somatize(soma.sk(columns()).to(soma.sk(Given())))
    g.fit(FRAME)

    assert list(g.get_node_state("column_transformer").feature_names_in_) == ["a", "b", "k"]


@pytest.mark.parametrize("x", [X, torch.tensor(X), X.tolist()])
def test_it_stands_before_a_module(x: Any) -> None:
    """A chain of an estimator and a module is fitted and trained in one call."""
    g = soma.Graph.somatize(soma.sk(StandardScaler()) >> Dense())
    answer = g.fit(x, Y, epochs=1, progress=False).forward(x)

    assert type(answer) is type(x)
    assert np.shape(answer) == (40, 2)


def test_it_stands_after_a_module() -> None:
    """An estimator reads what a module gives as an array."""
    g = soma.Graph.somatize(Dense() >> soma.sk(LogisticRegression()))
    g.fit(X, Y, epochs=0)

    assert set(g.forward(X)) <= {0, 1}


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (StandardScaler(), "transform"),
        (LogisticRegression(), "predict"),
        (LinearRegression(), "predict"),
        (LinearDiscriminantAnalysis(), "predict"),
        (make_pipeline(StandardScaler()), "transform"),
        (make_pipeline(StandardScaler(), LinearRegression()), "predict"),
    ],
)
def test_judges_predict_and_others_transform(estimator: Any, method: str) -> None:
    """Classifiers and regressors answer with `predict`, whatever else they can do."""
    assert soma.sk(estimator).method == method


def test_method_says_what_to_answer_with() -> None:
    """`method=` takes the place of the usual answer, and of the key."""
    filter = soma.sk(LogisticRegression(), method="predict_proba")
    answer = soma.Graph.somatize(filter).fit(X, Y).forward(X)

    assert answer.shape == (40, 2)
    assert identity(filter).digest != identity(soma.sk(LogisticRegression())).digest


@pytest.mark.parametrize(
    ("wrong", "method", "told"),
    [
        (StandardScaler, None, "the class `StandardScaler`"),
        (3, None, "a `int`"),
        (DBSCAN(), None, "it has none"),
        (StandardScaler(), "predict_proba", "it has `transform`"),
    ],
)
def test_what_cannot_answer_is_refused(wrong: Any, method: str | None, told: str) -> None:
    """What is no estimator, or has no way to answer, is refused when the filter is made."""
    with pytest.raises(NotAFilter, match=told):
        soma.sk(wrong, method=method)


def test_it_is_shown_by_the_name_of_its_estimator() -> None:
    """Ids, drawings and `repr` call the filter by its estimator."""
    g = soma.Graph.somatize(soma.sk(StandardScaler()) >> soma.sk(LogisticRegression(C=2)))

    assert g.filter_ids() == ["standard_scaler", "logistic_regression"]
    assert repr(g.filter("logistic_regression")) == "sk(LogisticRegression(C=2))"
    assert g.filter("standard_scaler").meta().kind == "trainable"


def test_the_estimator_itself_is_left_alone() -> None:
    """Fitting happens in a clone."""
    scaler = StandardScaler()
    soma.Graph.somatize(soma.sk(scaler)).fit(X)

    assert not hasattr(scaler, "mean_")


def test_what_it_learned_does_not_follow_the_data() -> None:
    """An estimator that keeps its data keeps a copy: changing the data changes no answer."""
    x, probe = torch.tensor(X), X.copy()
    g = soma.Graph.somatize(soma.sk(KNeighborsClassifier(1)), cache=None).fit(x, Y)
    before = g.forward(probe)
    x.neg_()

    assert np.array_equal(g.forward(probe), before)


def test_an_estimator_that_writes_reaches_no_tensor() -> None:
    """A transformer that works in place cannot write to the user's tensor."""
    x = torch.tensor(X)
    g = soma.Graph.somatize(soma.sk(StandardScaler(copy=False))).fit(x)
    g.forward(x)

    assert np.array_equal(x.numpy(), X)


def test_equal_estimators_are_one_filter() -> None:
    """A clone, fitted or not, makes the same filter."""
    scaler = StandardScaler(with_std=False)
    told = identity(soma.sk(scaler))

    assert identity(soma.sk(clone(scaler))) == told
    assert identity(soma.sk(scaler.fit(X))) == told
    assert {"scikit-learn", "soma-graph"} <= told.libraries.keys()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (StandardScaler(), StandardScaler(with_mean=False)),
        (make_pipeline(StandardScaler()), make_pipeline(StandardScaler(with_mean=False))),
        (FunctionTransformer(lambda x: x + 1), FunctionTransformer(lambda x: x + 2)),
        (make_pipeline(Centre()), make_pipeline(Centre(by=2))),
    ],
)
def test_parameters_are_part_of_the_identity(one: Any, other: Any) -> None:
    """A parameter at any depth, functions included, makes another filter."""
    assert identity(soma.sk(one)).digest != identity(soma.sk(other)).digest


@pytest.mark.parametrize("wrap", [lambda one: one, make_pipeline])
def test_the_code_of_own_estimators_counts(wrap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another method body is another filter, inside a pipeline too."""
    before = identity(soma.sk(wrap(Centre()))).digest
    monkeypatch.setattr(Centre, "transform", lambda self, X: np.asarray(X) * 3)

    assert identity(soma.sk(wrap(Centre()))).digest != before


def test_changed_parameters_data_and_labels_fit_again(tmp_path: Path) -> None:
    """What was fitted is found again only for the same parameters, data and labels."""

    def reason(estimator: Any, x: Any, y: Any) -> str:
        g = soma.Graph.somatize(soma.sk(estimator), cache=tmp_path).fit(x, y)
        return soma.why(g, "logistic_regression")

    assert "first time" in reason(LogisticRegression(), X, Y)
    assert "did not run" in reason(LogisticRegression(), X, Y)
    assert "`estimator` changed" in reason(LogisticRegression(C=2), X, Y)
    assert "input changed" in reason(LogisticRegression(C=2), X + 1, Y)
    assert "labels changed" in reason(LogisticRegression(C=2), X + 1, 1 - Y)

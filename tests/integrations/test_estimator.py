"""`soma.as_estimator`: a graph in the hands of scikit-learn."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import soma
from soma.errors import InvalidInput
from tests.integrations.graphs import ADAM, Dense, Head, Scale, blobs, estimators, network

FAST: Any = {"epochs": 15, "batch_size": 16, "optimizer": ADAM, "random_state": 0}
X, Y = blobs(("ash", "birch", "cedar"))
VALUES = X @ np.array([1.0, -2.0, 0.5, 0.0])


def estimator(**options: Any) -> Any:
    """Return a network as a classifier, or as asked."""
    return soma.as_estimator(network(), **{**FAST, "kind": "classifier", **options})


def weights(g: soma.Graph) -> list[torch.Tensor]:
    """Return copies of the weights."""
    return [one.detach().clone() for one in g.parameters()]


def test_a_classifier_knows_its_labels() -> None:
    """Labels may be strings; probabilities are of `classes_` alone and agree with the labels."""
    fitted = estimator().fit(X, Y)
    chances = fitted.predict_proba(X)

    assert list(fitted.classes_) == ["ash", "birch", "cedar"]
    assert fitted.score(X, Y) > 0.95
    assert np.allclose(chances.sum(axis=1), 1)
    assert (fitted.classes_[chances.argmax(axis=1)] == fitted.predict(X)).all()


def test_probabilities_are_a_softmax_over_the_classes_there_are() -> None:
    """A head wider than the targets does not answer with a class that nobody has seen."""
    fitted = estimator().fit(X, Y)
    scores = torch.tensor(fitted.graph_.forward(X)[:, :3], dtype=torch.float64)

    np.testing.assert_allclose(fitted.predict_proba(X), scores.softmax(dim=1).numpy())


def test_one_score_tells_two_classes_apart() -> None:
    """A head with one output is a logit of the second class."""
    two = Y != "ash"
    fitted = soma.as_estimator(network(1), kind="classifier", **FAST).fit(X, two)

    assert fitted.score(X, two) > 0.95
    assert fitted.predict_proba(X).shape == (len(X), 2)
    assert ((fitted.predict_proba(X)[:, 1] > 0.5) == fitted.predict(X)).all()


@pytest.mark.parametrize("columns", [1, 2])
def test_a_regressor_answers_in_the_shape_of_its_targets(columns: int) -> None:
    """One value a row for a vector of targets, rows for a table; numbers are R²."""
    y = VALUES if columns == 1 else np.stack([VALUES, -VALUES], axis=1)
    options = {**FAST, "epochs": 60}
    fitted = soma.as_estimator(network(columns), kind="regressor", **options).fit(X, y)

    assert fitted.predict(X).shape == y.shape
    assert fitted.score(X, y) > 0.9


def test_integers_are_values_to_a_regressor() -> None:
    """The kind decides, not the type of the targets."""
    fitted = soma.as_estimator(network(1), kind="regressor", **FAST).fit(X, np.arange(len(X)))

    assert fitted.predict(X).dtype.kind == "f"


def test_a_transformer_passes_on() -> None:
    """A graph without a model at its end stands first in a pipeline."""
    g = soma.Graph.somatize(soma.sk(StandardScaler()) >> PCA(2))
    model = make_pipeline(soma.as_estimator(g), LogisticRegression()).fit(X, Y)
    alone = make_pipeline(StandardScaler(), PCA(2), LogisticRegression()).fit(X, Y)

    assert np.array_equal(model.predict_proba(X), alone.predict_proba(X))
    assert not hasattr(model[0], "predict")


@pytest.mark.parametrize(
    ("graph", "loss", "kind"),
    [
        (estimators(), None, "classifier"),
        (soma.Graph.somatize(Scale()), None, "transformer"),
        (network(), torch.nn.CrossEntropyLoss(), "classifier"),
        (network(1), torch.nn.functional.mse_loss, "regressor"),
        (network(), None, None),
    ],
)
def test_the_kind_is_told_by_leaf_and_loss(graph: soma.Graph, loss: Any, kind: str | None) -> None:
    """Without a kind the leaf or the loss tells before `fit`, as far as they do."""
    unfitted = soma.as_estimator(graph, loss=loss)

    assert unfitted.__sklearn_tags__().estimator_type == kind
    assert (is_classifier(unfitted), is_regressor(unfitted)) == (
        kind == "classifier",
        kind == "regressor",
    )


@pytest.mark.parametrize(("y", "kind"), [(Y, "classifier"), (VALUES, "regressor")])
def test_else_the_targets_tell(y: Any, kind: str) -> None:
    """Floats are values, all else is classes."""
    head = 3 if kind == "classifier" else 1
    fitted = soma.as_estimator(network(head), **FAST).fit(X, y)

    assert fitted.kind_ == kind
    assert fitted.__sklearn_tags__().estimator_type == kind


def test_each_fit_starts_anew() -> None:
    """A second `fit` gives the weights of the first, and the graph given stays unbuilt."""
    g = network()
    one = soma.as_estimator(g, kind="classifier", **FAST)
    first = weights(one.fit(X, Y).graph_)
    second = weights(one.fit(X, Y).graph_)

    assert all(map(torch.equal, first, second))
    assert list(g.named_parameters()) == []


def test_a_clone_of_a_fitted_one_is_unfitted() -> None:
    """Nothing learned goes along, not from a trained graph either."""
    trained = network().fit(X, np.arange(len(X)) % 3, epochs=1, progress=False)
    copy = clone(soma.as_estimator(trained, kind="classifier", **FAST).fit(X, Y))

    assert not hasattr(copy, "graph_")
    assert list(copy.graph.named_parameters()) == []
    assert copy.graph.get_node_state("scale") is None
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_parameters_of_filters_are_reached_by_node() -> None:
    """Given ones, those with a default, and those of an estimator in the graph."""
    params = estimator().get_params()

    assert params["head__classes"] == 4
    assert params["head__bias"] is True
    assert params["body__width"] == 16
    assert params["scale__with_mean"] is True
    assert "body__build_module" not in params


def test_set_parameters_are_used() -> None:
    """They make another graph; neither a clone nor the graph given is changed."""
    one = estimator()
    g, copy = one.graph, clone(one)
    one.set_params(body__width=5, scale__with_mean=False, head__bias=False, epochs=1)
    fitted = one.fit(X, Y).graph_

    assert fitted.filter("body")._module[0].out_features == 5
    assert fitted.filter("head")._module.bias is None
    assert fitted.get_node_state("scale").with_mean is False
    assert g.filter("body").width == copy.get_params()["body__width"] == 16
    assert clone(one).get_params()["body__width"] == 5


@pytest.mark.parametrize("name", ["body__widht", "bdy__width", "nothing"])
def test_an_unknown_parameter_is_told(name: str) -> None:
    """A wrong name changes nothing, and the message has the nearest."""
    one = estimator()
    with pytest.raises(ValueError, match="nvalid parameter"):
        one.set_params(**{name: 1})

    assert one.get_params()["body__width"] == 16


def test_it_is_validated_with_stratified_folds() -> None:
    """`cross_val_score` knows a classifier, and sorted labels do no harm."""
    order = np.argsort(Y)
    scores = cross_val_score(estimator(), X[order], Y[order], cv=3)

    assert scores.min() > 0.9


@pytest.mark.process
def test_a_search_runs_in_two_processes() -> None:
    """`GridSearchCV(n_jobs=2)` finds the same as one process, and its best estimator works."""
    grid = {"body__width": [1, 8], "scale__with_std": [True, False]}
    alone = GridSearchCV(estimator(), grid, cv=2, n_jobs=1).fit(X, Y)
    search = GridSearchCV(estimator(), grid, cv=2, n_jobs=2).fit(X, Y)

    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    assert search.best_estimator_.score(X, Y) > 0.9


def test_it_stands_at_the_end_of_a_pipeline() -> None:
    """Parameters are reached through the pipeline, too."""
    model = make_pipeline(StandardScaler(), estimator())
    model.set_params(graphestimator__body__width=4).fit(X, Y)

    assert model.score(X, Y) > 0.9
    assert model[-1].graph_.filter("body")._module[0].out_features == 4


def test_it_stands_in_another_graph() -> None:
    """An estimator around a graph is an estimator to a graph as well."""
    g = soma.Graph.somatize(StandardScaler() >> Scale() >> estimator())
    answers = g.fit(X, Y).forward(X)

    assert (answers == Y).mean() > 0.95


def test_what_was_fitted_can_be_saved(tmp_path: Path) -> None:
    """The graph inside is saved as any graph, without pickle."""
    fitted = estimator().fit(X, Y)
    fitted.graph_.save(tmp_path / "best.soma")
    loaded = soma.Graph.load(tmp_path / "best.soma", classes=[Dense, Head])

    assert np.array_equal(loaded.forward(X), fitted.graph_.forward(X))


def test_frames_keep_their_names() -> None:
    """A frame reaches a `ColumnTransformer` as it is; other names are refused as ever."""
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=["u", "v"] * 45)
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), list("abcd")), ("words", OneHotEncoder(), ["kind"])]
    )
    g = soma.Graph.somatize(columns >> Dense() >> Head())
    fitted = soma.as_estimator(g, kind="classifier", **FAST).fit(frame, Y)

    assert list(fitted.feature_names_in_) == ["a", "b", "c", "d", "kind"]
    assert fitted.score(frame, Y) > 0.95
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame.rename(columns={"a": "z"}))


def test_frames_of_numbers_reach_a_module() -> None:
    """Where modules read the input, a frame becomes an array."""
    g = soma.Graph.somatize(Dense() >> Head())
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = soma.as_estimator(g, kind="classifier", **FAST).fit(frame, Y)

    assert (fitted.predict(frame) == fitted.predict(frame)).all()
    assert list(fitted.feature_names_in_) == list("abcd")


def test_weights_of_samples_are_refused() -> None:
    """They are not silently left out."""
    with pytest.raises(InvalidInput, match=r"`sample_weight`.* inside `loss`"):
        estimator().fit(X, Y, sample_weight=np.ones(len(X)))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "clusterer"}, "`kind` is 'clusterer'"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)])}, "functools.partial"),
    ],
)
def test_options_that_cannot_work_are_told_in_fit(options: Any, told: str) -> None:
    """As scikit-learn wants it, only `fit` judges."""
    with pytest.raises(InvalidInput, match=told):
        estimator(loss=torch.nn.functional.cross_entropy, **options).fit(X, Y)


@pytest.mark.filterwarnings("ignore::soma.errors.SomaWarning")
def test_a_training_that_lost_its_weights_is_an_error() -> None:
    """A search gives such parameters no score, rather than one of weights that are NaN."""
    steep = partial(torch.optim.SGD, lr=1e30)
    unfitted = soma.as_estimator(network(1), kind="regressor", optimizer=steep)
    with pytest.raises(InvalidInput, match="the weights are lost"):
        unfitted.fit(X, VALUES)

    assert not hasattr(unfitted, "graph_")


def test_a_graph_with_several_leaves_is_refused() -> None:
    """An estimator has one output; the leaves are named."""
    with pytest.raises(InvalidInput, match=r"2 leaves \(`head` and `head_2`\)"):
        soma.as_estimator(soma.Graph.somatize(Dense() >> (Head() | Head())))
    with pytest.raises(InvalidInput, match="a graph is wanted"):
        soma.as_estimator(Dense())

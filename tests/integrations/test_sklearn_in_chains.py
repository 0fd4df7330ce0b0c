"""Estimators that stand in an expression as they are."""

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from torch import nn

import soma
from soma.core import Topology, as_composable
from soma.errors import NotAFilter
from tests.integrations.estimators import X, Y


class Dense(soma.DifferentiableFilter):
    """One linear layer with two outputs."""

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Linear(input_shape[-1], 2)


class Join(soma.Filter):
    """A fan-in of arrays."""

    def forward(self, x: Any, state: object) -> Any:
        return np.concatenate(list(x.values()), axis=1)


def inner() -> soma.Graph:
    """Return a graph to stand beside an estimator."""
    return soma.Graph.somatize(StandardScaler(), name="inner")


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        (StandardScaler(), ["standard_scaler"]),
        (StandardScaler() >> Dense(), ["standard_scaler", "dense"]),
        (Join() >> StandardScaler(), ["join", "standard_scaler"]),
        (StandardScaler() | Dense(), ["standard_scaler", "dense"]),
        (Dense() | StandardScaler(), ["dense", "standard_scaler"]),
        (inner() >> PCA(1), ["inner.standard_scaler", "pca"]),
        (PCA(1) >> inner(), ["pca", "inner.standard_scaler"]),
        (PCA(1) >> (Join() | Join()) >> PCA(2), ["pca", "join", "join_2", "pca_2"]),
        (Join().to([PCA(1), PCA(2)]).collect(Join()), ["join", "pca", "pca_2", "join_2"]),
    ],
)
def test_it_stands_beside_filters(expression: object, ids: list[str]) -> None:
    """On either side of `>>` and `|`, next to a filter, a graph or an expression."""
    assert soma.Graph.somatize(expression).filter_ids() == ids


def test_it_is_what_sk_makes() -> None:
    """The node is the filter of `soma.sk`, so it answers and is shown like one."""
    g = soma.Graph.somatize((inner() | StandardScaler() | MinMaxScaler()) >> Join() >> PCA(2))
    alike = (inner() | soma.sk(StandardScaler()) | soma.sk(MinMaxScaler())) >> Join()
    expected = soma.Graph.somatize(alike >> soma.sk(PCA(2))).fit(X).forward(X)

    assert np.array_equal(g.fit(X).forward(X), expected)
    assert repr(g.filter("pca")) == "sk(PCA(n_components=2))"


def test_it_is_declared_as_a_node() -> None:
    """With an id or without one; the estimator itself stays unfitted."""
    g, scaler = soma.Graph(), StandardScaler()
    g.connect(g.node("scale", scaler), g.node(make_pipeline(PCA(2), LogisticRegression())))
    g.fit(X, Y)

    assert g.filter_ids() == ["scale", "pipeline"]
    assert not hasattr(scaler, "mean_")


def test_an_expression_shows_it() -> None:
    """An expression with an estimator is shown as it is written."""
    assert repr(StandardScaler() >> Dense()) == "StandardScaler() >> Dense()"


def test_two_bare_estimators_are_for_python() -> None:
    """Python asks neither of two estimators for us, and says so."""
    with pytest.raises(TypeError, match="unsupported operand"):
        StandardScaler() >> PCA() >> Dense()  # type: ignore[operator]


def test_a_class_is_told_its_brackets() -> None:
    """A class of estimators in place of an instance is the likely mistake."""
    with pytest.raises(NotAFilter, match=r"the class `PCA` stands .* Write `PCA\(\.\.\.\)`"):
        Dense() >> PCA


def test_what_answers_nothing_new_is_refused() -> None:
    """An estimator that cannot answer for new data is refused when the graph is made."""
    from sklearn.cluster import DBSCAN

    with pytest.raises(NotAFilter, match="`DBSCAN` lacks a method that answers"):
        soma.Graph.somatize(DBSCAN() >> Dense())


def test_a_module_stays_refused() -> None:
    """A bare module of torch needs a filter that builds it."""
    with pytest.raises(NotAFilter, match="`build_module`"):
        soma.Graph.somatize(StandardScaler() >> Dense() >> nn.Linear(2, 1))


def test_a_bare_topology_makes_no_filters() -> None:
    """Only a graph knows the other libraries."""
    with pytest.raises(NotAFilter, match=r"`soma\.sk`"):
        Topology().declare(as_composable(PCA(), "here"), None)

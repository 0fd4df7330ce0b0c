"""Estimators and data that the tests of scikit-learn share; a script, it runs one chain."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

import soma

X = np.random.default_rng(0).normal(size=(40, 4))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(k=["u", "v"] * 20)
TEXTS = ["one two", "two three three", "four", "one four"] * 10


def columns() -> ColumnTransformer:
    """Return an estimator that reads the columns of a frame by name."""
    return ColumnTransformer([("n", StandardScaler(), ["a", "b"]), ("c", OneHotEncoder(), ["k"])])


STORED: Mapping[str, tuple[Callable[[], Any], Any]] = {
    "StandardScaler": (StandardScaler, X),
    "PCA": (lambda: PCA(2), X),
    "LogisticRegression": (LogisticRegression, X),
    "Pipeline": (lambda: make_pipeline(StandardScaler(), PCA(2), LogisticRegression()), X),
    "ColumnTransformer": (columns, FRAME),
    "OneHotEncoder": (OneHotEncoder, FRAME[["k"]]),
    "KBinsDiscretizer": (
        lambda: KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf", encode="ordinal"),
        X,
    ),
    "TfidfVectorizer": (lambda: TfidfVectorizer(stop_words=["one"]), TEXTS),
}
KEPT_IN_MEMORY: Mapping[str, tuple[Callable[[], Any], Any]] = {
    "RandomForestClassifier": (lambda: RandomForestClassifier(3, random_state=0), X)
}


class Centre(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator of the user's own."""

    fits = 0

    def __init__(self, by: float = 1.0) -> None:
        self.by = by

    def fit(self, X: Any, y: Any = None) -> "Centre":
        """Learn the mean."""
        type(self).fits += 1
        self.mean_ = np.asarray(X).mean(0)
        return self

    def transform(self, X: Any) -> Any:
        """Take the mean away."""
        return (np.asarray(X) - self.mean_) * self.by


def main(name: str, folder: str) -> None:
    """Fit one chain, and tell its output, what became of it and whether pickle was asked."""
    asked: list[str] = []
    make, data = {**STORED, **KEPT_IN_MEMORY}[name]
    # Libraries that are imported on the way may pickle for themselves, so they come first.
    soma.Graph.somatize(soma.sk(make()), cache=f"{folder}/first").fit(data, Y).forward(data)
    sys.addaudithook(lambda event, _: asked.append(event) if event.startswith("pickle.") else None)
    g = soma.Graph.somatize(soma.sk(make()), cache=folder).fit(data, Y)
    (node,) = g.filter_ids()
    reason = soma.why(g, node)
    digests = [soma.cache.digest(one) for one in (g.forward(data), g.get_node_state(node))]
    sys.stdout.write("\n".join([*digests, reason, str(asked)]))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""scikit-learn's own checks of an estimator, on graphs as classifiers, regressors, transformers."""

import warnings
from typing import Any

import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import soma
from tests.integrations.graphs import ADAM, estimators, network, plain

TRAINED: Any = {"epochs": 40, "batch_size": 16, "optimizer": ADAM}


def chain(last: Any) -> soma.Graph:
    """Return a scaler and what comes after it."""
    return soma.Graph.somatize(soma.sk(StandardScaler()) >> last, cache=None)


ESTIMATORS = {
    "network as classifier": soma.as_estimator(network(), kind="classifier", **TRAINED),
    "network as regressor": soma.as_estimator(network(1), kind="regressor", **TRAINED),
    "network as the targets say": soma.as_estimator(plain(head=10), **TRAINED),
    "plain filter, classifier": soma.as_estimator(plain(head=4), kind="classifier", **TRAINED),
    "plain filter, regressor": soma.as_estimator(plain(head=1), kind="regressor", **TRAINED),
    "classifier at the leaf": soma.as_estimator(estimators()),
    "regressor at the leaf": soma.as_estimator(chain(Ridge())),
    "transformer at the leaf": soma.as_estimator(chain(PCA(1))),
}

EXPECTED = {
    "network as the targets say": {
        "check_estimators_nan_inf": "gives floats as targets, and this head is for classes"
    }
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_scikit_learn_accepts_it(name: str) -> None:
    """A graph behaves in all that scikit-learn checks of its estimators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that need what is not installed are skipped aloud
        results = check_estimator(
            ESTIMATORS[name], on_fail=None, expected_failed_checks=EXPECTED.get(name)
        )

    assert len(results) > 40
    assert {
        one["check_name"]: one["exception"] for one in results if one["status"] == "failed"
    } == {}

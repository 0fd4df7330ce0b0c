"""`soma.sk`: a scikit-learn estimator as a filter. What it learns is a fitted clone.

`_arrays.py` makes NumPy of what a graph is given; how a fitted estimator is stored is told in
`soma/cache/adapters/_sklearn.py`.
"""

from contextlib import nullcontext
from copy import deepcopy
from functools import lru_cache
from typing import Any, Self

from soma._extras import loaded, require
from soma.core import Filter
from soma.errors import NotAFilter, listing
from soma.integrations._arrays import to_arrays

ANSWERS = ("transform", "predict")
_OTHERS = ("predict_proba", "predict_log_proba", "decision_function", "score_samples")


def sk(estimator: object, *, method: str | None = None) -> Filter:
    """Return a filter that fits a clone of a scikit-learn estimator and answers with it.

    Tensors and lists of numbers reach the estimator as NumPy arrays, frames and texts as they
    are; what it returns is passed on. Classifiers and regressors answer with `predict`, all
    others with `transform`, or `predict` where there is none. An estimator that draws random
    numbers is only stored if it has a `random_state`.

    >>> import soma
    >>> from sklearn.preprocessing import StandardScaler
    >>> g = soma.Graph.somatize(soma.sk(StandardScaler()))
    >>> g.fit([[0.0], [2.0]]).forward([[4.0]])
    array([[3.]])

    Args:
        estimator: a transformer, classifier, regressor or `Pipeline`; it stays as it is.
        method: what to answer with instead, such as `"predict_proba"`.

    Raises:
        NotAFilter: it is no estimator, or has no such method.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        came = f"the class `{estimator.__name__}`" if isinstance(estimator, type) else None
        raise NotAFilter(
            f"`sk` got {came or f'a `{type(estimator).__name__}`'}; an estimator of "
            "scikit-learn is wanted, as in `sk(StandardScaler())`."
        )
    own: Any = require("sklearn.base", extra="sklearn").clone(estimator)
    return Estimator(own, _method_of(own, method))


class Estimator(Filter):
    """A filter around an estimator; each is of a subclass that bears the estimator's name."""

    def __new__(cls, /, *args: object, **kwargs: object) -> Self:
        """Choose the subclass; a copy is of one already."""
        named: type[Any] = _named(type(args[0]).__name__) if cls is Estimator else cls
        made: Self = super().__new__(named, *args, **kwargs)
        return made

    def __init__(self, estimator: Any, method: str) -> None:
        self.estimator = estimator
        self.method = method

    def fit(self, x: object, y: object = None) -> object:
        """Return a clone that has learned from a copy of the data, which it may keep."""
        learner = require("sklearn.base", extra="sklearn").clone(self.estimator)
        data = deepcopy(to_arrays(x))
        targets = () if y is None else (deepcopy(to_arrays(y)),)
        torch = loaded("torch")
        # Filters fit without gradients, and an estimator may be one that trains a network.
        with torch.enable_grad() if torch else nullcontext():
            return learner.fit(data, *targets)

    def forward(self, x: object, state: object) -> object:
        """Return what the fitted clone says of `x`."""
        return getattr(state, self.method)(to_arrays(x))

    def __reduce__(self) -> tuple[object, ...]:
        # The class is made for the estimator's name, so no other process finds it by import.
        return _made, (type(self).__name__, self.estimator, self.method), vars(self)

    def __repr__(self) -> str:
        """Show the call that makes the filter."""
        estimator = " ".join(repr(self.estimator).split())
        usual = self.method == _usual_method(self.estimator)
        return f"sk({estimator})" if usual else f"sk({estimator}, method={self.method!r})"


@lru_cache(maxsize=1_024)
def _named(name: str) -> type[Estimator]:
    """Return the filter class that drawings and messages call by the estimator's name."""
    about = f"A filter around a `{name}` of scikit-learn."
    own = {"__module__": __name__, "__doc__": about, "_saved_as": Estimator}
    return type(name, (Estimator,), own)


def _made(name: str, estimator: object, method: str) -> Estimator:
    return _named(name)(estimator, method)


def _method_of(estimator: object, wanted: str | None) -> str:
    method = _usual_method(estimator) if wanted is None else wanted
    if method is not None and callable(getattr(estimator, method, None)):
        return method
    has = [name for name in (*ANSWERS, *_OTHERS) if hasattr(estimator, name)]
    lacks = f"`{method}`" if method else "a method that answers for new data"
    raise NotAFilter(
        f"`{type(estimator).__name__}` lacks {lacks}; it has {listing(has) or 'none that does'}."
    )


def _usual_method(estimator: Any) -> str | None:
    base = require("sklearn.base", extra="sklearn")
    judges = base.is_classifier(estimator) or base.is_regressor(estimator)
    order = reversed(ANSWERS) if judges else ANSWERS
    return next((name for name in order if hasattr(estimator, name)), None)

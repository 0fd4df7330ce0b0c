"""What connects graphs with other libraries; each is loaded when its door is first used.

`sk` makes a filter of a scikit-learn estimator, `as_estimator` an estimator of a graph. Audits of
what training libraries train have a folder for each library, and begin in `_callback.py`.
"""

from typing import TYPE_CHECKING

from soma import _extras

if TYPE_CHECKING:
    from soma.integrations._estimator import GraphEstimator, as_estimator
    from soma.integrations._sklearn import sk

_LATE = {
    "GraphEstimator": "_estimator",
    "as_estimator": "_estimator",
    "sk": "_sklearn",
}

__all__ = ["GraphEstimator", "as_estimator", "sk"]

__getattr__ = _extras.late(__name__, _LATE, extra="sklearn")

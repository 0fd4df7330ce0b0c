"""What connects graphs with other libraries; each is loaded when its door is first used.

`sk` makes a filter of a scikit-learn estimator.
"""

from typing import TYPE_CHECKING

from soma import _extras

if TYPE_CHECKING:
    from soma.integrations._sklearn import sk

__all__ = ["sk"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'soma.integrations' has no attribute {name!r}")
    return getattr(_extras.require("soma.integrations._sklearn", extra="sklearn"), name)

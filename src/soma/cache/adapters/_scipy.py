"""SciPy's compressed sparse arrays and matrices, the usual output of text vectorisers."""

from typing import Any

from soma._extras import loaded, require
from soma.cache._parts import Parts, PutTogether, Stored, TakeApart

KINDS = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")


def find(cls: type) -> TakeApart | None:
    """Return how a sparse array is taken apart."""
    sparse = loaded("scipy.sparse")
    if sparse is None or cls.__name__ not in KINDS:
        return None
    return _sparse if vars(sparse).get(cls.__name__) is cls else None


def _sparse(value: Any) -> Parts:
    return Parts(
        "scipy.sparse",
        (value.data, value.indices, value.indptr),
        facts=(type(value).__name__, *value.shape),
        names=("data", "indices", "indptr"),
    )


def _build_sparse(stored: Stored) -> object:
    sparse = require("scipy.sparse", extra="sklearn")
    name, *shape = stored.facts
    if name not in KINDS:
        raise ValueError(f"{name!r} is no sparse array")
    value = getattr(sparse, name)(tuple(stored.items), shape=tuple(shape))
    _, value.indices, value.indptr = stored.items  # their type, which SciPy would narrow
    value.check_format(full_check=True)
    return value


BUILDERS: dict[str, PutTogether] = {"scipy.sparse": _build_sparse}

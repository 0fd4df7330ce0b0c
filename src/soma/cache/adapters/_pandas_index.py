"""Indexes of pandas: ranges, plain ones, and those of several levels."""

from typing import Any

from soma._extras import require
from soma.cache._parts import Parts, PutTogether, Refused, Stored, TakeApart
from soma.cache.adapters._pandas_column import column, read_column


def find(pd: Any, cls: type) -> TakeApart | None:
    """Return how an index is taken apart."""
    if not issubclass(cls, pd.Index) or vars(pd).get(cls.__name__) is not cls:
        return None
    takers: dict[type, TakeApart] = {pd.RangeIndex: _range, pd.MultiIndex: _levels}
    return takers.get(cls) or _index


def _range(value: Any) -> Parts:
    return Parts("pandas.range", (value.start, value.stop, value.step, value.name))


def _build_range(stored: Stored) -> object:
    *numbers, name = stored.items
    return require("pandas", extra="frames").RangeIndex(*numbers, name=name)


def _levels(value: Any) -> Parts:
    items = (list(value.levels), [codes.copy() for codes in value.codes], list(value.names))
    return Parts("pandas.levels", items, names=("levels", "codes", "names"))


def _build_levels(stored: Stored) -> object:
    levels, codes, names = stored.items
    index = require("pandas", extra="frames").MultiIndex
    return index(levels=levels, codes=codes, names=names, verify_integrity=True)


def _index(value: Any) -> Parts:
    freq = getattr(value, "freq", None) if value.dtype.kind in "mM" else None
    if freq is not None and freq != _read_freq(freq.freqstr):
        raise Refused(f"an index with a custom frequency such as {freq!r} has no codec")
    items = (column(value), value.name, None if freq is None else freq.freqstr)
    return Parts("pandas.index", items, names=("values", "name", "freq"))


def _build_index(stored: Stored) -> object:
    pd = require("pandas", extra="frames")
    parts, name, freq = stored.items
    values = read_column(pd, parts)
    index = pd.Index(values, name=name, dtype=values.dtype)
    if freq is not None:
        index.freq = _read_freq(freq)
    return index


def _read_freq(text: str) -> Any:
    return require("pandas.tseries.frequencies", extra="frames").to_offset(text)


BUILDERS: dict[str, PutTogether] = {
    "pandas.range": _build_range,
    "pandas.levels": _build_levels,
    "pandas.index": _build_index,
}

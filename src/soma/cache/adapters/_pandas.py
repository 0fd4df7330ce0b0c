"""Pandas frames, series and the scalars that stand in them. Indexes: `_pandas_index.py`.

A frame is taken apart into arrays and lists that have codecs of their own, so Arrow is not
needed and nothing is inferred on the way back.
"""

from typing import Any

from soma._extras import loaded, require
from soma.cache._parts import Parts, PutTogether, Stored, TakeApart
from soma.cache.adapters import _pandas_index
from soma.cache.adapters._pandas_column import column, read_column


def find(cls: type) -> TakeApart | None:
    """Return how a frame, a series, an index or a scalar of pandas is taken apart."""
    pd = loaded("pandas")
    if pd is None or not hasattr(pd, "DataFrame"):  # while pandas itself is importing
        return None
    takers: dict[type, TakeApart] = {
        pd.DataFrame: _frame,
        pd.Series: _series,
        pd.Timestamp: _timestamp,
        pd.Timedelta: _timedelta,
        type(pd.NaT): _nat,
        type(pd.NA): _na,
    }
    return takers.get(cls) or _pandas_index.find(pd, cls)


def _frame(value: Any) -> Parts:
    dtypes = set(value.dtypes)
    head = [value.columns, value.index, value.attrs]
    names = ["columns", "index", "attrs"]
    if len(dtypes) == 1 and value.size and _is_plain(dtypes.pop()):
        facts = ("matrix", *_flags(value))
        return Parts("pandas.frame", [*head, value.to_numpy()], facts, names=[*names, "values"])
    columns = [column(value.iloc[:, place]) for place in range(value.shape[1])]
    names += [f"columns[{label!r}]" for label in value.columns]
    return Parts("pandas.frame", [*head, *columns], ("columns", *_flags(value)), names=names)


def _flags(value: Any) -> tuple[str, ...]:
    return () if value.flags.allows_duplicate_labels else ("unique labels",)


def _set_flags(value: Any, flags: list[Any]) -> None:
    value.flags.allows_duplicate_labels = "unique labels" not in flags


def _is_plain(dtype: Any) -> bool:
    return type(dtype).__module__.startswith("numpy") and bool(dtype.kind != "O")


def _build_frame(stored: Stored) -> object:
    pd = require("pandas", extra="frames")
    form, *flags = stored.facts
    labels, index, attrs, *rest = stored.items
    if form == "matrix":
        (values,) = rest
        frame = pd.DataFrame(values, index=index, columns=labels, copy=False)
    else:
        columns = [read_column(pd, parts) for parts in rest]
        if any(len(values) != len(index) for values in columns):
            raise ValueError("columns of another length than the index")
        if len(columns) != len(labels):
            raise ValueError("columns without a label")
        series = (pd.Series(values, index=index, dtype=values.dtype) for values in columns)
        frame = pd.DataFrame(dict(enumerate(series)), index=index)
        frame.columns = labels
    frame.attrs = attrs
    _set_flags(frame, flags)
    return frame


def _series(value: Any) -> Parts:
    items = (value.name, value.index, value.attrs, column(value))
    return Parts("pandas.series", items, _flags(value), names=("name", "index", "attrs", "values"))


def _build_series(stored: Stored) -> object:
    pd = require("pandas", extra="frames")
    name, index, attrs, parts = stored.items
    values = read_column(pd, parts)
    if len(values) != len(index):
        raise ValueError("a series of another length than its index")
    series = pd.Series(values, index=index, name=name, dtype=values.dtype)
    series.attrs = attrs
    _set_flags(series, list(stored.facts))
    return series


def _timestamp(value: Any) -> Parts:
    return Parts("pandas.timestamp", (value.to_datetime64(), value.tzinfo, value.fold))


def _build_timestamp(stored: Stored) -> object:
    pd = require("pandas", extra="frames")
    moment, zone, fold = stored.items
    value = pd.Timestamp(moment)
    if zone is not None:
        value = value.tz_localize("UTC").tz_convert(zone)
    if value.fold != fold:
        raise ValueError("a moment that its zone does not have")
    return value


def _timedelta(value: Any) -> Parts:
    return Parts("pandas.timedelta", (value.to_timedelta64(),))


def _nat(value: Any) -> Parts:
    return Parts("pandas.NaT")


def _na(value: Any) -> Parts:
    return Parts("pandas.NA")


BUILDERS: dict[str, PutTogether] = {
    "pandas.frame": _build_frame,
    "pandas.series": _build_series,
    "pandas.timestamp": _build_timestamp,
    "pandas.timedelta": lambda stored: require("pandas", extra="frames").Timedelta(*stored.items),
    "pandas.NaT": lambda stored: require("pandas", extra="frames").NaT,
    "pandas.NA": lambda stored: require("pandas", extra="frames").NA,
    **_pandas_index.BUILDERS,
}

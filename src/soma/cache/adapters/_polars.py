"""Polars frames and series, taken apart into arrays and lists with codecs of their own.

Polars' own reader ends the process on some damaged files, so its format is not used.
"""

from typing import Any

from soma._extras import loaded, require
from soma.cache._parts import Parts, PutTogether, Refused, Stored, TakeApart

NUMBERS = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64", "Boolean"),
)
MOMENTS = ("Date", "Time", "Datetime", "Duration")
SIMPLE = (*NUMBERS, "Date", "Time", "String", "Binary", "Null")
DIGITS = 38  # of a polars decimal
PYTHON = "us"  # the finest unit of Python's own datetimes


def find(cls: type) -> TakeApart | None:
    """Return how a frame or a series is taken apart."""
    pl = loaded("polars")
    if pl is None or not hasattr(pl, "Series"):
        return None
    takers: dict[type, TakeApart] = {pl.DataFrame: _frame, pl.Series: _series}
    return takers.get(cls)


def _frame(value: Any) -> Parts:
    columns = [_column(series) for series in value.get_columns()]
    names = ["height", "names", *value.columns]
    return Parts("polars.frame", (value.height, value.columns, *columns), names=names)


def _series(value: Any) -> Parts:
    return Parts("polars.series", (value.name, _column(value)), names=("name", "values"))


def _column(series: Any) -> tuple[object, ...]:
    """Take values apart: numbers as an array and where it is null, all else as a list."""
    require("numpy", extra="torch")
    name = series.dtype.base_type().__name__
    kind = _kind(series.dtype, inside=False)
    if name not in NUMBERS + MOMENTS:
        return kind, series.to_list()
    numbers = series.to_physical()
    if not numbers.null_count():
        return kind, numbers.to_numpy()
    return (
        kind,
        numbers.fill_null(value=False if name == "Boolean" else 0).to_numpy(),
        (numbers.is_null().to_numpy()),
    )


def _kind(dtype: Any, *, inside: bool) -> tuple[object, ...]:
    """Describe a type.

    Raises:
        Refused: its values do not come back whole.
    """
    name = dtype.base_type().__name__
    if inside and (name == "Time" or getattr(dtype, "time_unit", PYTHON) == "ns"):
        raise Refused(f"the polars type {dtype} has no codec inside of a list or a struct")
    if name in SIMPLE:
        return (name,)
    match name:
        case "Datetime":
            return name, dtype.time_unit, dtype.time_zone
        case "Duration":
            return name, dtype.time_unit
        case "Decimal":
            return name, dtype.precision, dtype.scale
        case "Enum":
            return name, dtype.categories.to_list()
        case "Categorical" if dtype == loaded("polars").Categorical():  # type: ignore[union-attr]
            return (name,)
        case "List":
            return name, _kind(dtype.inner, inside=True)
        case "Array":
            return name, _kind(dtype.inner, inside=True), dtype.size
        case "Struct":
            return name, [(field.name, _kind(field.dtype, inside=True)) for field in dtype.fields]
    raise Refused(f"the polars type {dtype} has no codec")


def _build_frame(stored: Stored) -> object:
    pl = require("polars", extra="frames")
    height, names, *columns = stored.items
    series = [_read(pl, name, column) for name, column in zip(names, columns, strict=True)]
    if any(len(values) != height for values in series):
        raise ValueError("columns of another length than the frame")
    return pl.DataFrame(series) if series else pl.DataFrame(height=height)


def _build_series(stored: Stored) -> object:
    name, column = stored.items
    return _read(require("polars", extra="frames"), name, column)


def _read(pl: Any, name: str, column: tuple[Any, ...]) -> Any:
    """Return the series that `_column` took apart."""
    kind, values, *nulls = column
    dtype = _read_kind(pl, kind)
    try:
        if kind[0] not in NUMBERS + MOMENTS:
            return pl.Series(name, values, dtype=dtype, strict=True)
        series = pl.Series(name, values)
        for null in nulls:
            series = series.set(pl.Series(null), None)
        return series.cast(dtype)
    except pl.exceptions.PanicException as panic:  # no kind of `Exception`
        raise ValueError(str(panic)) from panic


def _read_kind(pl: Any, kind: tuple[Any, ...]) -> Any:
    """Return the type that `_kind` describes."""
    name, *facts = kind
    if name in SIMPLE and not facts:
        return getattr(pl, name)
    match kind:
        case ("Decimal", int(precision), int(scale)) if 0 <= scale <= precision <= DIGITS:
            return pl.Decimal(precision, scale)
        case ("Datetime" | "Duration" | "Enum" | "Categorical", *_):
            return getattr(pl, name)(*facts)
        case ("List", tuple(inner)):
            return pl.List(_read_kind(pl, inner))
        case ("Array", tuple(inner), int(size)):
            return pl.Array(_read_kind(pl, inner), size)
        case ("Struct", list(fields)):
            return pl.Struct({field: _read_kind(pl, inner) for field, inner in fields})
    raise ValueError("polars has no such type")


BUILDERS: dict[str, PutTogether] = {
    "polars.frame": _build_frame,
    "polars.series": _build_series,
}

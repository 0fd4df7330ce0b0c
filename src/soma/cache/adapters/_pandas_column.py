"""One column of pandas, as a tuple: what kind of column, then arrays and plain facts."""

from typing import Any

from soma._extras import loaded, require
from soma.cache._parts import Refused


def column(values: Any) -> tuple[object, ...]:
    """Take the values of a series or an index apart.

    Raises:
        Refused: this kind of column is not known here.
    """
    np: Any = loaded("numpy")
    dtype, name = values.dtype, type(values.dtype).__name__
    if isinstance(dtype, np.dtype):
        array = values.to_numpy()
        return ("object", list(array)) if dtype.kind == "O" else ("array", array)
    array = values.array
    match name:
        case "CategoricalDtype":
            return "categorical", array.codes, array.categories, array.ordered
        case "DatetimeTZDtype":
            return "zoned", array.asi8, dtype.unit, dtype.tz
        case "PeriodDtype":
            return "period", array.asi8, dtype.name
        case "IntervalDtype":
            return "interval", array.left, array.right, dtype.closed
        case "StringDtype":
            texts = array.to_numpy(object, na_value=None)
            return "text", list(texts), dtype.storage, dtype.na_value is loaded("pandas").NA  # type: ignore[union-attr]
        case "ArrowDtype":
            return "arrow", array.__arrow_array__()
    if hasattr(array, "_mask") and hasattr(array, "_data"):
        hidden = np.where(array._mask, np.zeros((), array._data.dtype), array._data)
        return "masked", hidden, array._mask
    raise Refused(f"a pandas column of type {dtype} has no codec")


def read_column(pd: Any, parts: tuple[Any, ...]) -> Any:
    """Return the array that `column` took apart.

    Raises:
        Exception: whatever comes of parts that make no column.
    """
    np = require("numpy", extra="torch")
    match parts:
        case ("array", array):
            return array
        case ("object", items):
            array = np.empty(len(items), object)
            array[:] = items
            return array
        case ("categorical", codes, categories, ordered):
            return pd.Categorical.from_codes(codes, categories, ordered=ordered)
        case ("zoned", numbers, unit, zone):
            moments = pd.DatetimeIndex(numbers.view(f"M8[{unit}]"), tz="UTC")
            return moments.tz_convert(zone).array
        case ("period", numbers, name):
            return pd.arrays.PeriodArray(numbers, dtype=pd.PeriodDtype(name[7:-1]))
        case ("interval", left, right, closed):
            return pd.arrays.IntervalArray.from_arrays(left, right, closed=closed)
        case ("text", texts, storage, has_na):
            kind = pd.StringDtype(storage, na_value=pd.NA if has_na else np.nan)
            return pd.array(texts, dtype=kind)
        case ("arrow", values):
            return pd.arrays.ArrowExtensionArray(values)
        case ("masked", numbers, mask):
            kinds = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
            return kinds.get(numbers.dtype.kind, pd.arrays.IntegerArray)(numbers, mask)
    raise ValueError("no column of pandas looks like this")

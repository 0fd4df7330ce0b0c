"""How many rows (samples) data has, and the checks that follow from it."""

from collections.abc import Mapping

from soma.engine._describe import describe
from soma.errors import InvalidInput


def row_count(value: object) -> int | None:
    """Return the number of rows of arrays, tensors, frames, lists and mappings of them.

    None where it cannot be told: scalars, text, tuples, or parts that disagree.
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        # A lazy array may not know yet: it says NaN, or something that is still to be computed.
        return shape[0] if shape and isinstance(shape[0], int) else None
    if isinstance(value, Mapping):
        counts = {row_count(part) for part in value.values()}
        return counts.pop() if len(counts) == 1 else None
    return len(value) if isinstance(value, list) else None


def check_rows(x: object, y: object) -> None:
    """Refuse data without rows, and targets that are not as many as the rows.

    Raises:
        InvalidInput: with both lengths.
    """
    for part in x.values() if isinstance(x, Mapping) else (x,):
        if row_count(part) == 0:
            raise InvalidInput(
                f"the data to fit has no rows: {describe(x)}. Give at least one sample."
            )
    rows = row_count(x)
    targets = y.items() if isinstance(y, Mapping) else [(None, y)]
    for leaf, target in targets:
        count = row_count(target)
        if rows is not None and count is not None and rows != count:
            where = f"y[{leaf!r}]" if leaf is not None else "y"
            raise InvalidInput(
                f"x has {rows} rows and {where} has {count}: {describe(x)} against "
                f"{describe(target)}. Give one target for each row."
            )

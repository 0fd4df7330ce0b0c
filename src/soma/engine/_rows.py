"""How many rows (samples) data has, the checks that follow from it, and rows cut and joined."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from itertools import chain
from typing import Any

from soma._extras import loaded, require
from soma.core import Inputs
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


def chunks(x: object, size: int | None) -> Iterator[object]:
    """Give `x` in chunks of `size` rows, the last one with what is left; no rows are one chunk.

    Raises:
        InvalidInput: there is no such size, or there are no rows to count.
    """
    if not isinstance(size, int) or size < 1:
        raise InvalidInput(
            f"`chunk_size` is {size!r}; a stream wants a number of rows from 1 up: "
            "`g.forward(x, stream=True, chunk_size=1024)`."
        )
    rows = row_count(x)
    if rows is None:
        raise InvalidInput(
            f"rows are to be taken from {describe(x)}, which has none that can be counted. Give "
            "arrays, tensors, lists or frames, or a dict or an `Inputs` of as many rows each."
        )
    return (_cut(x, slice(start, start + size)) for start in range(0, max(rows, 1), size))


def _cut(value: Any, rows: slice) -> object:
    if isinstance(value, Mapping):
        return _with_parts(value, {key: _cut(part, rows) for key, part in value.items()})
    return value.iloc[rows] if hasattr(value, "iloc") else value[rows]  # `iloc` is of pandas


def join(parts: Sequence[object]) -> object:
    """Return the rows of all `parts` as one value of their kind; a single part as it is.

    Empty parts count only where there are no others: their types are mere defaults.

    Raises:
        InvalidInput: the parts have no rows, or are of several kinds.
    """
    if len(parts) == 1:
        return parts[0]
    filled = [part for part in parts if row_count(part) != 0] or parts[:1]
    first = filled[0]
    if len(filled) == 1:
        return first
    found = _joiner(first)
    if found is None:
        raise InvalidInput(
            f"{describe(first)} came for each chunk, which has no rows to join. Tensors, arrays, "
            "lists, frames, and dicts and tuples of them can be joined; a "
            'filter that needs all rows at once says `_stream_mode = "barrier"`.'
        )
    kind, joined = found
    other = next((part for part in filled if not isinstance(part, kind)), None)
    if other is not None:
        raise InvalidInput(
            f"{describe(first)} came for one chunk and {describe(other)} for another; give the "
            "same kind for each."
        )
    return joined(filled)


def _joiner(first: object) -> tuple[type, Callable[[Sequence[Any]], object]] | None:
    """Return a kind that `first` is of, and what joins values of it."""
    if isinstance(first, Mapping):
        return Mapping, _joined_mappings
    if isinstance(first, tuple):
        return tuple, _joined_tuples
    if isinstance(first, list):
        return list, lambda parts: list(chain.from_iterable(parts))
    if row_count(first) is None:
        return None
    torch, numpy = loaded("torch"), loaded("numpy")
    if torch is not None and isinstance(first, torch.Tensor):
        return torch.Tensor, torch.cat
    if numpy is not None and isinstance(first, numpy.ndarray):
        masked = isinstance(first, numpy.ma.MaskedArray)
        return numpy.ndarray, numpy.ma.concatenate if masked else numpy.concatenate
    for library in filter(None, map(loaded, ("pandas", "polars"))):
        if isinstance(first, library.DataFrame | library.Series):
            return type(first), library.concat
    return _other_frame(first)


def _other_frame(first: object) -> tuple[type, Callable[[Sequence[Any]], object]] | None:
    """Return how frames of other libraries are joined that narwhals knows, as Arrow's tables."""
    if not hasattr(first, "__arrow_c_stream__"):
        return None
    narwhals = require("narwhals", extra="frames")
    if not narwhals.dependencies.is_into_dataframe(first):
        return None
    return type(first), lambda parts: narwhals.concat(
        [*map(narwhals.from_native, parts)]
    ).to_native()


def _joined_mappings(parts: Sequence[Mapping[Any, object]]) -> object:
    first = parts[0]
    _check_alike(parts, [part.keys() for part in parts])
    return _with_parts(first, {key: join([part[key] for part in parts]) for key in first})


def _joined_tuples(parts: Sequence[Any]) -> object:
    first = parts[0]
    _check_alike(parts, [len(part) for part in parts])
    joined = map(join, zip(*parts, strict=True))
    return first._make(joined) if hasattr(first, "_make") else tuple(joined)


def _check_alike(parts: Sequence[object], marks: Sequence[object]) -> None:
    other = next((i for i, mark in enumerate(marks) if mark != marks[0]), None)
    if other is not None:
        raise InvalidInput(
            f"{describe(parts[0])} came for one chunk and {describe(parts[other])} for another; "
            "give the same parts for each."
        )


def _with_parts(value: Mapping[Any, object], parts: Mapping[Any, object]) -> object:
    """Return a mapping of the class of `value`, if that can be written to, with other parts."""
    if isinstance(value, Inputs):
        return Inputs(parts)
    if not isinstance(value, MutableMapping):
        return dict(parts)
    other = copy(value)
    for key, part in parts.items():
        other[key] = part
    return other

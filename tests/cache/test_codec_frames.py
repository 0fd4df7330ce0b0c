"""Frames, series, indexes and Arrow tables come back as they were, where installed."""

from base64 import b64encode
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soma.cache._codec import Undecodable, Unencodable, decode_blob, decode_inline, encode
from soma.cache._digest import digest
from tests.cache.values import names

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
ipc = pytest.importorskip("pyarrow.ipc")

ROME = ZoneInfo("Europe/Rome")
HOURS = pd.date_range("2024-10-27", periods=5, freq="h", tz="Europe/Rome")
GROUPS = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["k", None])

SERIES = [
    pd.Series([1, 2]),
    pd.Series([1.5, np.nan], name="x", dtype="f4"),
    pd.Series(["a", None]),
    pd.Series([1, "a", None, pd.NA, pd.NaT, pd.Timestamp("2024", tz=ROME)], dtype=object),
    pd.Series(pd.Categorical(["a", "b", None], categories=["b", "a", "z"], ordered=True)),
    pd.Series(pd.Categorical([1, 2])),
    pd.Series(HOURS),
    pd.Series(1, index=HOURS),
    pd.Series(pd.date_range("2024", periods=3)).dt.as_unit("ms"),
    pd.Series(pd.period_range("2024", periods=3, freq="M")),
    pd.Series(pd.interval_range(0, 3)),
    pd.cut(pd.Series([1.0, 2, 3]), 2),
    pd.Series([1, None, 3], dtype="Int8"),
    pd.Series([True, None], dtype="boolean"),
    pd.Series([1.5, None], dtype="Float32"),
    pd.Series(["a", None], dtype="string[python]"),
    pd.Series(["a", None], dtype="string[pyarrow]"),
    pd.Series([1, None], dtype="int64[pyarrow]"),
    pd.Series([], dtype="f8"),
    pd.Series(["a", "b"], dtype=object),
    pd.Series([1]).set_flags(allows_duplicate_labels=False),
]
FRAMES = [
    pd.DataFrame(),
    pd.DataFrame(columns=["a", "b"]),
    pd.DataFrame(index=[1, 2]),
    pd.DataFrame(np.random.default_rng(0).random((50, 30))),
    pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, np.nan], "d": HOURS[:2]}),
    pd.DataFrame({"a": pd.Series([], dtype="i1"), "b": pd.Series([], dtype="f8")}),
    pd.DataFrame([[1, 2.5]], columns=["a", "a"]),
    pd.DataFrame([[1, 2.5]], columns=GROUPS[:2]),
    pd.DataFrame({"a": [1, 2, 3]}, index=GROUPS),
    pd.DataFrame({"a": ["x", None, np.nan], "b": ["x", "y", "z"], "c": [1, 2, 3]}, dtype=object),
    pd.DataFrame({"a": [1]}).set_flags(allows_duplicate_labels=False),
    pd.DataFrame({"a": [1], "b": ["x"]}).set_flags(allows_duplicate_labels=False),
]
INDEXES = [pd.Index([1, 2], name="n"), pd.RangeIndex(5, name="r"), HOURS, GROUPS, pd.Index(["a"])]
INDEXES += [
    pd.timedelta_range("1s", periods=3),
    pd.CategoricalIndex(["a", "b"]),
    pd.Index([1, "a"]),
]
MOMENTS = [pd.NaT, pd.NA, pd.Timestamp("2024"), pd.Timestamp("2024", tz=ROME), pd.Timedelta("1us")]
MOMENTS += [pd.Timestamp("2024-10-27 00:30", tz="UTC").tz_convert(ROME), *HOURS[2:4]]
POLARS = [
    pl.DataFrame(),
    pl.DataFrame({"a": [1, None], "b": ["x", "ü"], "c": [[1], [2, 3]], "d": [{"q": 1}, {"q": 2}]}),
    pl.DataFrame({"a": range(9), "s": [f"a long long string {i}" for i in range(9)]})[3:7],
    pl.concat([pl.DataFrame({"a": [1, None]}), pl.DataFrame({"a": [2, 3]})], rechunk=False),
    pl.Series("c", ["a", "b", "a"], dtype=pl.Categorical),
    pl.Series("e", ["a", "b", "a"], dtype=pl.Enum(["b", "a"])),
    pl.Series("t", [datetime(2024, 1, 1), None], dtype=pl.Datetime("ms", "Europe/Rome")),
    pl.Series("d", ["1.5", "2.25"]).cast(pl.Decimal(10, 2)),
    pl.Series([None, None]),
    pl.Series("b", [True, None, False]),
    pl.Series("b", [b"x", None]),
    pl.Series("f", [1.5, None, float("nan")], dtype=pl.Float32),
    pl.Series("n", [1, None]).cast(pl.Datetime("ns")),
    pl.Series("n", [1, None]).cast(pl.Time),
    pl.Series("n", [1, None]).cast(pl.Duration("ms")),
    pl.Series("a", [[1, 2], [3, None]], dtype=pl.Array(pl.Int16, 2)),
    pl.Series("l", [[], None, [[1.5]]], dtype=pl.List(pl.List(pl.Float32))),
    pl.Series("s", [{"a": 1, "b": [datetime(2024, 1, 1)]}, None]),
    pl.DataFrame({"a": []}),
]
ARROW = [
    pa.table({"a": [1, None, 3], "s": ["x", "yy", None]}),
    pa.table({"d": pa.array(["a", "b", "a"]).dictionary_encode(), "l": [[1], None, [2, 3]]}),
    pa.table({"a": pa.array([], pa.int8())}),
    pa.record_batch({"a": [1, 2]}),
    pa.record_batch({"a": pa.array([], pa.int8())}),
    pa.array([1, 2, None]),
    pa.array(["aa", "bb", None, "d"]).slice(1, 2),
    pa.array([{"a": 1}, None]),
    pa.array([], pa.string()),
    pa.nulls(3),
    pa.chunked_array([[1, 2], [3]]),
    pa.chunked_array([], pa.int8()),
]
VALUES = [*SERIES, *FRAMES, *INDEXES, *MOMENTS, *POLARS, *ARROW]


def stored(value: object) -> bytes:
    """Return a value's file, made large enough to be one."""
    encoded = encode([value, b"x" * 5_000])
    assert encoded.blob is not None
    return b"".join(encoded.blob)


def back(value: object) -> Any:
    """Store a value and read it."""
    return decode_blob(memoryview(bytearray(stored(value))), copy=False)[0]  # type: ignore[index]


@pytest.mark.parametrize("value", VALUES, ids=names(VALUES))
def test_frames_keep_their_digest(value: object) -> None:
    """A value that comes back has the class and the digest it had."""
    assert type(back(value)) is type(value)
    assert digest(back(value)) == digest(value)


@pytest.mark.parametrize("series", SERIES, ids=names(SERIES))
def test_series_come_back(series: Any) -> None:
    """Values, type, name and index of a series come back."""
    pd.testing.assert_series_equal(back(series), series, check_freq=True, check_flags=True)


@pytest.mark.parametrize("frame", FRAMES, ids=names(FRAMES))
def test_pandas_frames_come_back(frame: Any) -> None:
    """Columns, their types and order, labels and index of a frame come back."""
    pd.testing.assert_frame_equal(
        back(frame), frame, check_freq=True, check_column_type=True, check_flags=True
    )


@pytest.mark.parametrize("index", INDEXES, ids=names(INDEXES))
def test_indexes_come_back(index: Any) -> None:
    """Class, values, names and frequency of an index come back."""
    pd.testing.assert_index_equal(back(index), index, exact=True)
    assert getattr(back(index), "freq", None) == getattr(index, "freq", None)


@pytest.mark.parametrize("value", [*POLARS, *ARROW], ids=names([*POLARS, *ARROW]))
def test_polars_and_arrow_come_back(value: Any) -> None:
    """Values and types of polars frames and Arrow tables come back."""
    assert back(value).equals(value)
    for kind in ("schema", "dtype", "type"):
        assert getattr(back(value), kind, None) == getattr(value, kind, None)


PLAIN = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=pd.Index([0, 1], name="i"))
STAMPS = pd.Series(pd.date_range("2024", periods=2))
LETTERS = pd.Series(["a", "b"], dtype="category")
UNLIKE = [
    *(PLAIN, PLAIN[["b", "a"]], PLAIN.astype("i4"), PLAIN.astype("f8"), PLAIN.astype("Int64")),
    *(PLAIN.rename(columns={"a": "c"}), PLAIN.reset_index(drop=True), PLAIN.set_axis(["x", "y"])),
    *(PLAIN["a"], PLAIN["a"].rename("z"), PLAIN["a"].to_numpy(), PLAIN[["a"]], PLAIN.iloc[::-1]),
    *(STAMPS, STAMPS.dt.tz_localize("UTC"), STAMPS.dt.tz_localize(ROME), STAMPS.dt.as_unit("s")),
    *(LETTERS, LETTERS.astype(str), LETTERS.astype(object), LETTERS.cat.as_ordered()),
    *(LETTERS.cat.add_categories("c"), LETTERS.cat.reorder_categories(["b", "a"])),
    *(pl.DataFrame({"a": [1, 2]}), pl.Series("a", [1, 2]), pl.Series("b", [1, 2])),
    *(pl.Series("a", [1, 2], dtype=pl.Int8), pa.table({"a": [1, 2]}), pa.array([1, 2])),
    *(pa.chunked_array([[1, 2]]), pa.array([1, 2], pa.int8()), pa.record_batch({"a": [1, 2]})),
]


def test_frames_that_look_alike_have_digests_of_their_own() -> None:
    """Zone, unit, index, column order, types and categories all count."""
    assert len(set(map(digest, UNLIKE))) == len(UNLIKE)


def test_chunks_do_not_count() -> None:
    """How a table is cut into chunks leaves its digest as it is."""
    assert digest(pa.chunked_array([[1], [2, 3]])) == digest(pa.chunked_array([[1, 2, 3]]))
    cut = pl.concat([pl.Series("a", [1]), pl.Series("a", [2])], rechunk=False)
    assert digest(cut) == digest(pl.Series("a", [1, 2]))


REFUSED = [
    (pd.Series([0, 1.0]).astype("Sparse[float]"), "Sparse"),
    (pd.DataFrame({"a": [object()]}), "`object` has no codec"),
    (pl.Series([object()], dtype=pl.Object), "Object"),
    (pl.DataFrame({"a": [1]}).lazy(), "LazyFrame"),
    (pl.Series([[1]]).cast(pl.List(pl.Datetime("ns"))), "inside of a list"),
]


@pytest.mark.parametrize(("value", "reason"), REFUSED, ids=names(REFUSED))
def test_what_a_frame_cannot_store_is_named(value: object, reason: str) -> None:
    """Columns without a codec are refused with the reason."""
    with pytest.raises(Unencodable, match=reason):
        encode(value)


FILES = [stored(value) for value in VALUES]


@settings(max_examples=500)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=9)), min_size=1, max_size=4),
)
def test_damaged_frames_are_misses(file: bytes, edits: list[tuple[float, bytes]]) -> None:
    """A damaged file is another value or none, and raises nothing else."""
    damaged = bytearray(file)
    for place, piece in edits:
        start = int(place * (len(damaged) - 5_000))
        damaged[start : start + len(piece)] = piece
    try:
        decode_blob(memoryview(damaged), copy=True)
    except Undecodable:
        return


def test_compressed_arrow_is_a_miss() -> None:
    """A stream that grows when it is read is refused before it is read."""
    table = pa.table({"a": [0] * 100_000})
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    rows = f'[["arrow.table",[],[],0,[]]],"blocks":["{b64encode(sink.getvalue()).decode()}"]}}'

    with pytest.raises(Undecodable, match="compressed"):
        decode_inline(f'{{"soma":1,"value":[0],"rows":{rows}'.encode())

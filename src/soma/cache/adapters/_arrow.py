"""Arrow tables, batches and arrays, as one uncompressed Arrow stream.

Chunks are joined first: how a table is cut is no part of its value.
"""

from typing import Any

from soma._extras import loaded, require
from soma.cache._parts import Block, Parts, PutTogether, Stored, TakeApart
from soma.cache.adapters._arrow_stream import check_stream


def find(cls: type) -> TakeApart | None:
    """Return how a table, a batch or an array is taken apart."""
    pa = loaded("pyarrow")
    if pa is None or not hasattr(pa, "Table"):
        return None
    if cls is pa.Table:
        return _table
    if cls is pa.RecordBatch:
        return _batch
    if cls is pa.ChunkedArray:
        return _chunked
    return _array if issubclass(cls, pa.Array) else None


def _table(value: Any) -> Parts:
    return _stream("arrow.table", value)


def _batch(value: Any) -> Parts:
    return _stream("arrow.batch", _pa().Table.from_batches([value]))


def _chunked(value: Any) -> Parts:
    return _stream("arrow.chunked", _pa().table({"": value}))


def _array(value: Any) -> Parts:
    return _stream("arrow.array", _pa().table({"": value}))


def _stream(kind: str, table: Any) -> Parts:
    ipc = require("pyarrow.ipc", extra="frames")
    sink = _pa().BufferOutputStream()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions()) as writer:
        writer.write_table(table.combine_chunks())
    return Parts(kind, block=Block(memoryview(sink.getvalue()).cast("B")))


def _read(stored: Stored) -> Any:
    check_stream(stored.bytes())
    ipc = require("pyarrow.ipc", extra="frames")
    table = ipc.open_stream(_pa().py_buffer(bytes(memoryview(stored.bytes())))).read_all()
    table.validate(full=True)
    return table.combine_chunks()


def _build_batch(stored: Stored) -> object:
    table = _read(stored)
    batches = table.to_batches()
    if len(batches) > 1:
        raise ValueError("one batch in several pieces")
    return batches[0] if batches else _pa().RecordBatch.from_pylist([], schema=table.schema)


def _build_array(stored: Stored) -> object:
    column = _read(stored).column(0)
    if column.num_chunks > 1:
        raise ValueError("one array in several pieces")
    return column.chunk(0) if column.num_chunks else _pa().array([], column.type)


def _pa() -> Any:
    return require("pyarrow", extra="frames")


BUILDERS: dict[str, PutTogether] = {
    "arrow.table": _read,
    "arrow.batch": _build_batch,
    "arrow.chunked": lambda stored: _read(stored).column(0),
    "arrow.array": _build_array,
}

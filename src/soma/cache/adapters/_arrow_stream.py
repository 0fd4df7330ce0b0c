"""Checks an Arrow stream before a library reads it: nothing in it may be compressed.

A few compressed bytes can ask for any amount of memory, and soma never writes them. The
layout is that of Arrow's `Message.fbs`: tables of offsets to fields, counted from 0.
"""

from struct import unpack_from

from soma.cache._parts import Buffer

CONTINUES = 0xFFFFFFFF
DICTIONARY, RECORDS = 2, 3  # kinds of messages that have a body
KIND, HEADER, LENGTH = 1, 2, 3  # fields of a message
INNER = 1  # the field of a dictionary that holds its records
COMPRESSION = 3  # the field of records


def check_stream(stream: Buffer) -> None:
    """Raise unless a stream is whole and holds no compressed buffer.

    Raises:
        ValueError: it is not.
        struct.error: it points outside of itself.
    """
    place = 0
    while place < len(stream):
        start, size = unpack_from("<Ii", stream, place)
        if start != CONTINUES or size < 0:
            raise ValueError("no message of an Arrow stream")
        if size == 0:
            return
        place += 8
        body = _check_message(memoryview(stream)[place : place + size])
        place += size + body
        if body < 0 or place > len(stream):
            raise ValueError("an Arrow message that is not whole")


def _check_message(message: memoryview) -> int:
    """Return how many bytes of body follow a message."""
    (table,) = unpack_from("<I", message)
    kind_at, header_at, length_at = (_field(message, table, at) for at in (KIND, HEADER, LENGTH))
    kind = message[kind_at] if kind_at else 0
    if kind in (DICTIONARY, RECORDS):
        records = _follow(message, header_at)
        if kind == DICTIONARY:
            records = _follow(message, _field(message, records, INNER))
        if _field(message, records, COMPRESSION):
            raise ValueError("a compressed Arrow message")
    return int(unpack_from("<q", message, length_at)[0]) if length_at else 0


def _field(message: memoryview, table: int, field: int) -> int:
    """Return where a field of a table stands, or 0 when it is left out."""
    (back,) = unpack_from("<i", message, table)
    layout = table - back
    (size,) = unpack_from("<H", message, layout)
    if 4 + 2 * field >= size:
        return 0
    (offset,) = unpack_from("<H", message, layout + 4 + 2 * field)
    return table + int(offset) if offset else 0


def _follow(message: memoryview, place: int) -> int:
    """Return where the table stands that a field points to."""
    if not place:
        raise ValueError("an Arrow message without a header")
    return place + int(unpack_from("<I", message, place)[0])

"""The small files of a cache: records, which lead from a key to a value, and pointers to them.

A record's file is one JSON object. Its first field is a hash of all that follows, so a torn,
edited or bit-flipped file is told from a whole one; its `key` tells when it stands under the
name of another. Pointers are such objects too, a line each, the latest at the end of the file.
Whatever cannot be read is a miss. Where the files stand: `_base_store.py`.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Literal, TypeVar

import msgspec
from blake3 import blake3

__all__ = [
    "FORMAT",
    "LARGEST",
    "Last",
    "OtherFormat",
    "Record",
    "SORTS",
    "TORN",
    "check_hash",
    "latest_lines",
    "parse",
    "parse_lasts",
    "read_lasts",
    "write_last",
    "write_record",
]

FORMAT = 3  # another number here makes every stored entry a miss
LARGEST = 1_000_000  # bytes of a file that is still read
SORTS = 16  # whose last records are remembered for one node
TORN = "its bytes are not the ones that were written"

_HEAD = b'{"check":"'
_BODY = len(_HEAD) + 32 + len(b'",')

_is_hash = re.compile(r"[0-9a-f]{64}").fullmatch  # a tenth of the time of a pattern in the type


class OtherFormat(ValueError):
    """A file was written by another version, in a format that this one does not know."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one cached value: its key, its digest and where its bytes are.

    Fields that a later version adds are skipped; since nobody rewrites a record that they
    have read, its file keeps them.
    """

    format: int = FORMAT
    key: str
    digest: str  # of the value
    size: Annotated[int, msgspec.Meta(ge=0)]  # bytes of the blob, or of the inline text
    inline: str | None = None  # a small value as JSON text; None: it has a blob
    kind: Literal["state", "output"]
    facts: dict[str, object] = {}  # for the explainer; opaque here
    created: float
    blob_hash: str | None = None  # of the blob's file, as `hash_file` answers


class Last(msgspec.Struct, frozen=True, kw_only=True):
    """The key of the last record of one sort that a node has written."""

    format: int = FORMAT
    name: str  # stands for the node
    sort: str
    key: str


class _Format(msgspec.Struct):
    """All that is asked of a file that may be of a later version."""

    format: int


T = TypeVar("T", Record, Last)

_records = msgspec.json.Decoder(Record)
_lasts = msgspec.json.Decoder(Last)


def check_hash(text: str) -> str:
    """Return a key or digest, or raise if it is none.

    Raises:
        ValueError: it is not 64 characters of 0-9 and a-f.
    """
    if not _is_hash(text):
        raise ValueError(f"{text!r} is no key or digest: 64 characters 0-9 and a-f are wanted.")
    return text


def write_record(record: Record) -> bytes:
    """Return the bytes of a record's file.

    Raises:
        ValueError: its facts are no JSON, or the file would be too large to be read again.
    """
    return _seal(record)


def parse(data: bytes) -> Record:
    """Return the record in a file's bytes.

    Raises:
        OtherFormat: another version has written it.
        ValueError: it is damaged; the message says how.
    """
    record = _open_seal(data, _records)
    vouched = record.blob_hash is None or _is_hash(record.blob_hash)
    if not (_is_hash(record.key) and _is_hash(record.digest) and vouched):
        raise ValueError("it holds something else where a key or digest should be")
    return record


def read_lasts(data: bytes) -> Iterator[Last]:
    """Yield the pointers in a file's bytes that can be read, the latest first."""
    for line in reversed(data.splitlines()):
        with suppress(ValueError):
            yield _parse_last(line)


def parse_lasts(data: bytes) -> list[Last]:
    """Return the pointers in a file's bytes.

    Raises:
        OtherFormat: another version has written one.
        ValueError: one is damaged; the message says how.
    """
    return [_parse_last(line) for line in data.splitlines()]


def latest_lines(data: bytes, name: str) -> list[bytes]:
    """Return the line of a node's latest pointer of each sort, for the sorts written last."""
    latest: dict[str, Last] = {}
    for last in read_lasts(data):
        if last.name == name and len(latest) < SORTS:
            latest.setdefault(last.sort, last)
    return [write_last(last) for last in reversed(latest.values())]


def write_last(last: Last) -> bytes:
    """Return the line of a pointer."""
    return _seal(last) + b"\n"


def _parse_last(line: bytes) -> Last:
    last = _open_seal(line, _lasts)
    if not (_is_hash(last.name) and _is_hash(last.key)):
        raise ValueError("it holds something else where a name or key should be")
    return last


def _seal(content: Record | Last) -> bytes:
    """Return content as JSON whose first field is a hash of what follows it."""
    try:
        body = msgspec.json.encode(content)[1:]
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"this is no JSON: {error}") from error
    if len(body) > LARGEST - _BODY:
        raise ValueError(f"{len(body):,} bytes are more than a record may have ({LARGEST:,}).")
    return b"".join((_HEAD, _hash(body), b'",', body))


def _open_seal(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return the content of a sealed file, or raise a ValueError that says what is wrong."""
    if len(data) > LARGEST:
        raise ValueError("it is too large")
    if not data.startswith(_HEAD):
        raise ValueError("it does not begin as a record does")
    if data[len(_HEAD) : _BODY] != _hash(data[_BODY:]) + b'",':
        raise ValueError(TORN)
    try:
        content = decoder.decode(data)
    except (ValueError, RecursionError) as error:
        raise _other(data) or ValueError(f"it holds something else ({error})") from error
    if content.format != FORMAT:
        raise _other(data) or ValueError(f"there is no format {content.format}")
    return content


def _other(data: bytes) -> OtherFormat | None:
    """Return why a whole file does not fit, if that is because another version wrote it."""
    try:
        found = msgspec.json.decode(data, type=_Format).format
    except (ValueError, RecursionError):
        return None
    return OtherFormat(f"it has format {found}, not {FORMAT}") if found != FORMAT else None


def _hash(body: bytes) -> bytes:
    """Return the 32 characters that vouch for the bytes of a file."""
    return blake3(body).hexdigest(length=16).encode()

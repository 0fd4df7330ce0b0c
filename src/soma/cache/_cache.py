"""`Cache`: what the engine asks. A key leads to a record, a record to a value.

A record is small and is read often; the bytes of a value are read only when the value itself is
needed. Storing never fails a computation: `Kept.reason` says why a value was not stored.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from soma.cache._codec import Encoded, Undecodable, Unencodable, decode_blob, decode_inline, encode
from soma.cache._digest import Undigestible, digest
from soma.cache._record import Record
from soma.cache._store import Store
from soma.cache._why import last_name


class Missing(LookupError):
    """The bytes of a stored value are gone or damaged: it has to be computed again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a value: its digest, and the reason if it was not stored."""

    digest: str | None
    reason: str | None = None


class Cache:
    """Finds stored values by key, and keeps new ones."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __deepcopy__(self, memo: dict[int, object]) -> "Cache":
        return self  # copies of a graph share what they remember

    def find(self, key: str) -> Record | None:
        """Return the record of a key, without reading its value; None is a miss."""
        return self.store.get_record(key)

    def load(self, record: Record) -> object:
        """Return a stored value; no two calls share memory that either could write to.

        Raises:
            Missing: its bytes are gone, damaged or of a kind that is unknown here.
        """
        try:
            if record.inline is not None:
                return decode_inline(record.inline)
            blob = self.store.open_blob(record.digest, record.blob_hash)
            if blob is None:
                raise Missing
            try:
                return decode_blob(blob.buffer, copy=False)
            finally:
                blob.close()
        except Undecodable as damage:
            reason = str(damage)
        # Out of the handler: the traceback would keep views of the bytes alive.
        self.store.distrust(record.digest, reason)
        raise Missing

    def keep(
        self,
        key: str,
        value: object,
        kind: Literal["state", "output"],
        facts: Mapping[str, object],
    ) -> Kept:
        """Store a value under a key, the blob first, since the record is the commit point."""
        try:
            encoded = encode(value)
        except Unencodable as refusal:
            known = None
            with suppress(Undigestible):
                known = digest(value)
            return Kept(known, str(refusal))
        if self.store.writable:
            if encoded.blob is not None:
                self.store.put_blob(encoded.digest, _views(encoded.blob))
            self.store.put_record(_record(key, encoded, kind, facts))
        return Kept(encoded.digest)

    def last(self, node: str, sort: str) -> str | None:
        """Return the key of the last record of this sort that a node wrote."""
        return self.store.get_last(last_name(node), sort)

    def note_last(self, node: str, sort: str, key: str) -> None:
        """Note a record as a node's last, and as its last of this sort."""
        self.store.put_last(last_name(node), sort, key)


def _record(
    key: str,
    encoded: Encoded,
    kind: Literal["state", "output"],
    facts: Mapping[str, object],
) -> Record:
    inline = encoded.inline
    return Record(
        key=key,
        digest=encoded.digest,
        size=encoded.size,
        inline=None if inline is None else inline.decode("utf-8", "surrogatepass"),
        kind=kind,
        facts=dict(facts),
        created=time.time(),
        blob_hash=encoded.blob_hash,
    )


def _views(buffers: Sequence[object]) -> list[memoryview]:
    return [memoryview(one) for one in buffers]  # type: ignore[arg-type]

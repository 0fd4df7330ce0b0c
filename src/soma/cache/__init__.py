"""Remembers what was computed: a fingerprint and digests make a key, a key leads to a value.

The path: `_fingerprint.py` (what a filter is), `_digest.py` (what a value is), `_codec.py` (a
value as bytes), `_store.py` (where bytes stand), `_cache.py` (what the engine asks).
"""

from soma.cache._cache import Cache, Kept, Missing
from soma.cache._codec import Undecodable, Unencodable, decode_blob, decode_inline, encode
from soma.cache._digest import Undigestible, combine, digest
from soma.cache._file_store import FileStore
from soma.cache._fingerprint import Identity, Unfingerprintable, identity
from soma.cache._memory_store import MemoryStore
from soma.cache._object_store import ObjectStore
from soma.cache._open import DEFAULT, Default, open_store
from soma.cache._recall import Glance, Moment, Recall
from soma.cache._record import Record
from soma.cache._registry import register_codec
from soma.cache._store import Store
from soma.cache._upkeep import Collected, Damage, Stats, gc, parse_size, pin, stats, unpin, verify
from soma.cache._why import became, last_record
from soma.errors import CacheWarning, InvalidCache

__all__ = [
    "Cache",
    "CacheWarning",
    "Collected",
    "DEFAULT",
    "Damage",
    "Default",
    "FileStore",
    "Glance",
    "Identity",
    "InvalidCache",
    "Kept",
    "MemoryStore",
    "Missing",
    "Moment",
    "ObjectStore",
    "Recall",
    "Record",
    "Stats",
    "Store",
    "Undecodable",
    "Undigestible",
    "Unencodable",
    "Unfingerprintable",
    "became",
    "combine",
    "decode_blob",
    "decode_inline",
    "digest",
    "encode",
    "gc",
    "identity",
    "last_record",
    "open_store",
    "parse_size",
    "pin",
    "register_codec",
    "stats",
    "unpin",
    "verify",
]

"""Upkeep of a store: what is in it, what is damaged, what is removed, what is pinned.

These work on any store that lists its files. The command line prints what they answer.
"""

import re
import time
from dataclasses import dataclass

from soma.cache._record import TORN, OtherFormat, Record, check_hash, parse, parse_lasts
from soma.cache._store import Entry, Store
from soma.cache._tensor_file import hash_file
from soma.errors import InvalidCache

__all__ = ["Collected", "Damage", "Stats", "gc", "parse_size", "pin", "stats", "unpin", "verify"]

ABANDONED = 3600.0  # seconds after which nobody is still writing a temporary file

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a store holds, and what this process has met in it."""

    place: str
    entries: int
    states: int
    outputs: int
    blobs: int
    bytes: int
    pinned: int
    damaged: int  # met by this process
    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection has done, in files and bytes."""

    removed: int
    freed: int
    left: int  # bytes that are still there


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that does not hold what it should, and why."""

    entry: Entry
    reason: str


def parse_size(text: str) -> int:
    """Return the bytes that a size such as `20G`, `500M` or `1K` stands for.

    Raises:
        InvalidCache: it is no size.
    """
    found = _SIZE.fullmatch(text.strip().upper())
    if not found:
        raise InvalidCache(
            f"{text!r} is no size. Give a number of bytes, or one with K, M, G or T behind it "
            "(thousands) or Ki, Mi, Gi, Ti (1024s), such as '20G'."
        )
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " KMGT".index(found[2] or " "))


def stats(store: Store) -> Stats:
    """Return what a store holds; every record is read."""
    entries = list(store.entries())
    records = [record for entry in entries if (record := _record(store, entry))]
    states = sum(record.kind == "state" for record in records)
    return Stats(
        place=store.place,
        entries=_number(entries, "record"),
        states=states,
        outputs=len(records) - states,
        blobs=_number(entries, "blob"),
        bytes=sum(entry.size for entry in entries),
        pinned=_number(entries, "pin"),
        damaged=store.counts.damaged,
        hits=store.counts.hits,
        misses=store.counts.misses,
    )


def gc(store: Store, max_size: int, *, down_to: int | None = None) -> Collected:
    """Remove what was not used for longest until at most `max_size` bytes are left.

    Pinned entries stay, and so do files that are none of the store's. What a crash has left
    half-written is swept once it is an hour old.

    Args:
        down_to: once above `max_size`, remove more than needed, so that this happens seldom.
    """
    entries = list(store.entries())
    now = time.time()
    orphans = [e for e in entries if e.kind == "temporary" and e.used < now - ABANDONED]
    kept = _kept(store, entries)
    counted = [entry for entry in entries if entry.kind != "temporary"]
    left = sum(entry.size for entry in counted)
    target = max_size if down_to is None or left <= max_size else min(down_to, max_size)
    removed = freed = 0
    for entry in orphans:
        store.remove(entry)
    for entry in sorted(counted, key=lambda entry: entry.used):
        if left <= target:
            break
        if (entry.kind, entry.name) not in kept:
            store.remove(entry)
            removed, freed, left = removed + 1, freed + entry.size, left - entry.size
    return Collected(removed + len(orphans), freed + sum(e.size for e in orphans), left)


def verify(store: Store) -> list[Damage]:
    """Read and re-hash every file of a store, and return those that are damaged.

    A record whose blob was collected is none: asking for it is a miss, as for any other key.
    """
    found: list[Damage] = []
    hashes: dict[str, set[str]] = {}
    blobs: list[Entry] = []
    for entry in store.entries():
        if entry.kind == "blob":
            blobs.append(entry)
        elif reason := _fault(store, entry, hashes):
            found.append(Damage(entry, reason))
    for entry in blobs:
        if reason := _blob_fault(store, entry, hashes.get(entry.name, set())):
            found.append(Damage(entry, reason))
    return found


def pin(store: Store, key: str) -> None:
    """Keep an entry and its value, whatever the cap says.

    Raises:
        LookupError: the store has no such entry.
    """
    if store.get_record(check_hash(key)) is None:
        raise LookupError(f"the cache at {store.place} has no entry {key!r}.")
    store.pin(key)


def unpin(store: Store, key: str) -> None:
    """Let the cap decide about an entry again."""
    store.remove(Entry("pin", check_hash(key), 0, 0.0))


def _number(entries: list[Entry], kind: str) -> int:
    """Return how many entries are of a kind."""
    return sum(entry.kind == kind for entry in entries)


def _record(store: Store, entry: Entry) -> Record | None:
    """Return the record that an entry is, if it is one and can be read."""
    if entry.kind != "record":
        return None
    try:
        data = store.read(entry)
        return None if data is None else parse(bytes(data))
    except (OSError, ValueError):
        return None


def _kept(store: Store, entries: list[Entry]) -> set[tuple[str, str]]:
    """Return kind and name of all that no collection may remove."""
    pins = {entry.name for entry in entries if entry.kind == "pin"}
    kept = {(kind, name) for name in pins for kind in ("pin", "record")}
    for name in pins:
        if record := _record(store, Entry("record", name, 0, 0.0)):
            kept.add(("blob", record.digest))
    return kept


def _fault(store: Store, entry: Entry, hashes: dict[str, set[str]]) -> str | None:
    """Return what is wrong with a small file, and note which blob a record speaks of."""
    try:
        data = store.read(entry)
        if data is None or entry.kind in ("pin", "temporary"):
            return None
        if entry.kind == "last":
            names = {last.name for last in parse_lasts(bytes(data))}
            return None if names == {entry.name} else "it is the pointer of another name"
        record = parse(bytes(data))
    except OtherFormat:
        return None
    except (OSError, ValueError) as error:
        return str(error)
    if record.key != entry.name:
        return "it is the record of another key"
    if record.blob_hash is not None:
        hashes.setdefault(record.digest, set()).add(record.blob_hash)
    return None


def _blob_fault(store: Store, entry: Entry, hashes: set[str]) -> str | None:
    """Return what is wrong with a blob; one that no record speaks of says nothing."""
    try:
        data = store.read(entry)
    except OSError as error:
        return str(error)
    if data is None or not hashes or hash_file(data) in hashes:
        return None
    return TORN

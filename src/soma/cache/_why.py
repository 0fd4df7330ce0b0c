"""What a store knows of a node: the record it wrote last, and what became of one that is gone.

A record's facts hold the line that says why its node ran: `engine/_facts.py` wrote it there.
"""

from functools import lru_cache

from soma.cache._digest import combine
from soma.cache._record import Record, parse
from soma.cache._store import Entry, Store

__all__ = ["became", "last_name", "last_record"]


@lru_cache(maxsize=4_096)
def last_name(node: str) -> str:
    """Return the name under which the last records of a node are noted."""
    return combine("last", node)


def last_record(store: Store, node: str) -> Record | None:
    """Return the record that a node of this id wrote last, in whatever graph and class."""
    key = store.get_last(last_name(node))
    return None if key is None else store.get_record(key)


def became(store: Store, key: str) -> str:
    """Return what became of a stored value that is missing: `evicted` or `damaged`."""
    try:
        data = store.read(Entry("record", key, 0, 0.0))
        if data is None:
            return "evicted"
        record = parse(bytes(data))
        if record.inline is None and store.read(Entry("blob", record.digest, 0, 0.0)) is None:
            return "evicted"
    except (OSError, ValueError):
        pass
    return "damaged"

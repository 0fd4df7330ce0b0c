"""The paths of a store's files, below a folder or in a bucket.

    records/a/abcd….json   what is known of a key; written last, it says that all is there
    blobs/a/abcd…          the bytes of a value, named by its digest
    last/a/abcd….json      the keys that a node wrote last
    pins/a/abcd….json      a key that the cap does not touch

A new folder costs as much as a new file, so there are sixteen of each kind. `_base_store.py`
reads and writes there.
"""

import re

from soma.cache._store import Kind

__all__ = ["FOLDERS", "kind_and_name", "path_of"]

FOLDERS: dict[Kind, str] = {"record": "records", "blob": "blobs", "last": "last", "pin": "pins"}

_KINDS = {folder: kind for kind, folder in FOLDERS.items()}
_PATH = re.compile(r"(?:(blobs)|(records|last|pins))/([0-9a-f])/(\3[0-9a-f]{63})(?(2)\.json)")


def path_of(kind: Kind, name: str) -> str:
    """Return the path of an entry, whose name is a key or digest."""
    suffix = "" if kind == "blob" else ".json"
    return f"{FOLDERS[kind]}/{name[:1]}/{name}{suffix}"


def kind_and_name(path: str) -> tuple[Kind, str] | None:
    """Return which entry a path is; None: it is none of ours."""
    found = _PATH.fullmatch(path)
    return (_KINDS[found[1] or found[2]], found[4]) if found else None

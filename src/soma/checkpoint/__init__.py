"""Graphs as bundles: one zip file with a manifest, and members that other tools can read.

Writing goes `_save.py`, `_bundle.py`, `_pack.py`; reading `_archive.py` (limits), `_bundle.py`,
`_allowed.py` (which classes a file may name), `_load.py`. What modules add, `soma.training` knows.
"""

from soma.checkpoint._allowed import Allowed
from soma.checkpoint._bundle import Reader, Writer, reading
from soma.checkpoint._filters import Maker
from soma.checkpoint._load import LoadedNode, link_nodes, load_nodes
from soma.checkpoint._manifest import Manifest, NodeEntry, StoredValue
from soma.checkpoint._random import random_state, restore_random
from soma.checkpoint._save import Additions, graph_manifest
from soma.checkpoint._saved import NestedFilter, Reference, Saved

__all__ = [
    "Additions",
    "Allowed",
    "LoadedNode",
    "Maker",
    "Manifest",
    "NestedFilter",
    "NodeEntry",
    "Reader",
    "Reference",
    "Saved",
    "StoredValue",
    "Writer",
    "graph_manifest",
    "link_nodes",
    "load_nodes",
    "random_state",
    "reading",
    "restore_random",
]

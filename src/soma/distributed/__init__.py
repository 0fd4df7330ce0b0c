"""Nodes in other processes: workers, and what a graph does with modules that are there.

`_worker.py` waits for programs in a folder (`_meeting.py`), or at an address (`_door.py`), and
starts `_server.py` for each, where `_host.py` holds the modules. On a program's side `_joining.py`
begins a session, `_connection.py` calls what is in `_host.py`, `_stand_in.py` stands for what is
there, and `_placement.py` trains across both.
"""

from typing import TYPE_CHECKING

from soma import _extras
from soma.distributed._meeting import Meeting
from soma.distributed._records import Card, Versions, versions
from soma.distributed._worker import serve

if TYPE_CHECKING:
    from soma.distributed._cluster import local_cluster
    from soma.distributed._current import connect, disconnect
    from soma.distributed._placement import RpcPlacement
    from soma.distributed._stand_in import RemoteParameter, stand_in

# These need torch; a worker that waits does not.
_LATE = {
    "RemoteParameter": "_stand_in",
    "RpcPlacement": "_placement",
    "connect": "_current",
    "disconnect": "_current",
    "local_cluster": "_cluster",
    "stand_in": "_stand_in",
}

__all__ = [
    "Card",
    "Meeting",
    "RemoteParameter",
    "RpcPlacement",
    "Versions",
    "connect",
    "disconnect",
    "local_cluster",
    "serve",
    "stand_in",
    "versions",
]

__getattr__ = _extras.late(__name__, _LATE, extra="torch")

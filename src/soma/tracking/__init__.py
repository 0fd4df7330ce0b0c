"""Run directories: what happened in a run and what was logged, written and read as plain files.

`_layout.py` says what is in a directory. Writing: `_track.py` and `_run.py`, and `_listener.py`
for what a graph says. Reading: `_record.py`, which needs neither torch nor NumPy.
"""

from soma.tracking._check import check_run
from soma.tracking._feed import tell
from soma.tracking._graph_record import GraphRecord, NodeRecord
from soma.tracking._journal_lines import (
    AnsweredLine,
    AskedLine,
    BegunLine,
    JournalLine,
    ModelLine,
    RouteLine,
    ToolLine,
    ValueLine,
)
from soma.tracking._layout import numbered
from soma.tracking._listener import RunListener
from soma.tracking._numbers import numbers_out
from soma.tracking._points import CacheActivity, Manifest, State, Timing
from soma.tracking._record import RunRecord, run_records
from soma.tracking._recording_graph import graph_record
from soma.tracking._row_file import RowFile
from soma.tracking._run import Run
from soma.tracking._sink import Point, Sink
from soma.tracking._status import Standing
from soma.tracking._track import track_run

__all__ = [
    "AnsweredLine",
    "AskedLine",
    "BegunLine",
    "CacheActivity",
    "GraphRecord",
    "JournalLine",
    "Manifest",
    "ModelLine",
    "NodeRecord",
    "Point",
    "RouteLine",
    "RowFile",
    "Run",
    "RunListener",
    "RunRecord",
    "Sink",
    "Standing",
    "State",
    "Timing",
    "ToolLine",
    "ValueLine",
    "check_run",
    "graph_record",
    "numbered",
    "numbers_out",
    "run_records",
    "tell",
    "track_run",
]

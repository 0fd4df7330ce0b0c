"""Run directories: what happened in a run and what was logged, written and read as plain files.

`_layout.py` says what is in a directory. Writing: `_track.py` and `_run.py`, `_listener.py` for
what a graph says, `_journal.py` for what a flow does. Reading: `_record.py`, which needs neither
torch nor NumPy.
"""

from soma.tracking._check import check_run
from soma.tracking._continue import continue_run
from soma.tracking._drawn import Drawn
from soma.tracking._feed import tell
from soma.tracking._graph_record import GraphRecord, NodeRecord
from soma.tracking._journal import Journal
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
from soma.tracking._journal_reading import read_journal
from soma.tracking._layout import VALUES, numbered, runs_folder
from soma.tracking._listener import RunListener
from soma.tracking._numbers import numbers_out
from soma.tracking._plain import shown
from soma.tracking._points import CacheActivity, Manifest, State, Timing
from soma.tracking._record import RunRecord, run_records
from soma.tracking._recording_graph import graph_record
from soma.tracking._row_file import RowFile
from soma.tracking._run import Run
from soma.tracking._secrets import Secrets, named_secrets
from soma.tracking._sink import Point, Sink
from soma.tracking._status import Standing
from soma.tracking._track import track_run

__all__ = [
    "AnsweredLine",
    "AskedLine",
    "BegunLine",
    "CacheActivity",
    "Drawn",
    "GraphRecord",
    "Journal",
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
    "Secrets",
    "Sink",
    "Standing",
    "State",
    "Timing",
    "ToolLine",
    "VALUES",
    "ValueLine",
    "check_run",
    "continue_run",
    "graph_record",
    "named_secrets",
    "numbered",
    "numbers_out",
    "read_journal",
    "run_records",
    "runs_folder",
    "shown",
    "tell",
    "track_run",
]

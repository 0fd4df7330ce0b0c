"""Runs a graph: lowers its plan to slots, walks them, says what happened.

The path: `_program.py` (a plan becomes slots), `_run.py` and `_parallel.py` (the loops),
`_runner.py` (what a graph holds), `_stream.py` (data in chunks). The training room, one floor up,
adds modules.
"""

from soma.engine._describe import describe
from soma.engine._keys import Key, NoKey, Part, Unkeyed
from soma.engine._program import Call, Instruction, Program, lower
from soma.engine._rows import check_rows, chunks, row_count
from soma.engine._run import Extras, run, run_observed, run_slots, watched
from soma.engine._runner import Bind, Runner
from soma.engine._seeding import generators_kept, seeded
from soma.engine._stream import Stream
from soma.engine._values import protected, without_gradients
from soma.engine._why import why

__all__ = [
    "Bind",
    "Call",
    "Extras",
    "Instruction",
    "Key",
    "NoKey",
    "Part",
    "Program",
    "Runner",
    "Stream",
    "Unkeyed",
    "check_rows",
    "chunks",
    "describe",
    "generators_kept",
    "lower",
    "protected",
    "row_count",
    "run",
    "run_observed",
    "run_slots",
    "seeded",
    "watched",
    "why",
    "without_gradients",
]

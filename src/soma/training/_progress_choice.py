"""Chooses how a fit shows its progress: by what is asked for, and by where it runs."""

import os
import sys
from typing import TextIO

from soma.training._progress import Bar, Lines, Progress
from soma.training._progress_notebook import NotebookLine, in_notebook


def progress_for(wanted: bool | None) -> Progress:
    """Return what `Graph.fit(progress=wanted)` shows.

    None draws a bar in a terminal and in a notebook, and nothing elsewhere. True also writes
    lines elsewhere, such as into a file of logs; False shows nothing. `SOMA_PROGRESS=0` in the
    environment keeps everything silent.
    """
    stream: TextIO | None = sys.stderr
    if wanted is False or os.environ.get("SOMA_PROGRESS") == "0":
        return Progress()
    if in_notebook():
        return NotebookLine()
    if stream is None:
        return Progress()
    if stream.isatty():
        return Bar(stream)
    return Lines(stream) if wanted else Progress()

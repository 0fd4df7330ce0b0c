"""Writes files that survive a crash of the writer, and reads files of unknown origin.

`_atomic.py` writes a file whole, `_append.py` line by line; `_read.py` reads both again.
`_below.py` turns a name that somebody gave into a path that stays inside a folder; `_lock.py`
keeps others out.
"""

from soma.files._append import Appender
from soma.files._atomic import TEMPORARY, Before, NoPlainFile, make_folder, write_atomically
from soma.files._below import below
from soma.files._lock import locked
from soma.files._read import LONGEST_LINE, is_folder, parse_json, read_json, read_lines

__all__ = [
    "Appender",
    "Before",
    "LONGEST_LINE",
    "NoPlainFile",
    "TEMPORARY",
    "below",
    "is_folder",
    "locked",
    "make_folder",
    "parse_json",
    "read_json",
    "read_lines",
    "write_atomically",
]

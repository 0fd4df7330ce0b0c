"""Reads `journal.jsonl` back, also beside its writer."""

from pathlib import Path

from msgspec import json

from soma.files import parse_json, read_lines
from soma.tracking._journal_lines import JournalLine
from soma.tracking._layout import JOURNAL

_decode = json.Decoder(JournalLine).decode


def read_journal(folder: Path) -> list[JournalLine]:
    """Return the effects of the run in `folder`, in the order in which they were written.

    Lines that are torn, over 1 MiB or no effect are left out.

    Raises:
        OSError: the file cannot be read.
    """
    found = map(journal_line_of, read_lines(folder / JOURNAL))
    return [line for line in found if line is not None]


def journal_line_of(line: bytes) -> JournalLine | None:
    """Return the effect that a line holds; None if it holds none."""
    try:
        parse_json(line)  # is sane all through, also where a line takes anything
        found: JournalLine = _decode(line)
    except (ValueError, RecursionError):
        return None
    return found

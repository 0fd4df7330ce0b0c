"""`Journal`: writes `journal.jsonl`: each effect of a flow, on the disk before the next begins."""

from pathlib import Path
from typing import TypeVar

from msgspec import to_builtins

from soma.errors import InvalidInput
from soma.files import LONGEST_LINE, Appender
from soma.tracking._journal_lines import JournalLine
from soma.tracking._journal_reading import journal_line_of
from soma.tracking._layout import JOURNAL
from soma.tracking._row_file import encoded
from soma.tracking._run import not_written
from soma.tracking._secrets import Secrets

L = TypeVar("L", bound=JournalLine)


class Journal:
    """The effects of one run, added from any thread.

    Args:
        folder: of the run.
        secrets: what no line may hold.
    """

    def __init__(self, folder: Path, secrets: Secrets) -> None:
        self._path = folder / JOURNAL
        self._secrets = secrets
        try:
            self._file = Appender(str(self._path), durable=True)
        except OSError as error:
            raise not_written(self._path, error) from error

    def append(self, line: L) -> L:
        """Keep one effect, on the disk when this returns, and return it as its readers have it.

        Raises:
            InvalidInput: the line is too long, or holds what no reader takes.
            RunNotWritten: it cannot be written.
        """
        data = encoded(self._secrets.hide(to_builtins(line)))
        if len(data) > LONGEST_LINE:
            raise InvalidInput(
                f"what `{line.at}` said and heard has {len(data):,} bytes; the journal of a run "
                f"takes {LONGEST_LINE:,} at once. Hand over less, such as a summary or the path "
                "of a file."
            )
        kept = journal_line_of(data)
        if not isinstance(kept, type(line)):
            raise InvalidInput(
                f"what `{line.at}` said and heard cannot be read back from a journal: it holds a "
                "number that is too large, or something of another type than is wanted there, or "
                "is nested too deep. Hand over plainer data."
            )
        try:
            self._file.append(data)
        except (OSError, ValueError) as error:
            raise not_written(self._path, error) from error
        return kept

    def close(self) -> None:
        """Take no more lines."""
        self._file.close()

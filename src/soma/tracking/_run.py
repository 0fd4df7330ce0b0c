"""`Run`: a run while it goes on; everything in its directory is written through it.

`_track.py` makes the directory; `_listener.py` turns events into lines for it; `_record.py` reads
a directory again.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Self

from msgspec import to_builtins

from soma.core import Diagnostic, ModuleFlow
from soma.errors import InvalidInput, RunNotWritten
from soma.files import Appender, make_folder, write_atomically
from soma.tracking._feed import Feed
from soma.tracking._graph_record import GraphRecord
from soma.tracking._heartbeat import Heartbeat
from soma.tracking._layout import (
    COMPILE,
    DIAGNOSTICS,
    EVENTS,
    FORMAT,
    GRAPH,
    METRICS,
    MODULES,
    STATUS,
    numbered,
)
from soma.tracking._lines import BeganLine, EventLine, MetricLine
from soma.tracking._numbers import as_number, as_step, number_out, numbers_out
from soma.tracking._plain import shown, text_out
from soma.tracking._points import Manifest
from soma.tracking._process import ProcessMark
from soma.tracking._row_file import RowFile, encoded
from soma.tracking._secrets import Secrets
from soma.tracking._sink import Sink
from soma.tracking._status import standing_after, write_status

_LONGEST_NAME = 1000  # characters in the name of a metric


class Run:
    """One run, made by `track_run`: `log` keeps a number, `dir` is its directory.

    A point survives the death of the process once its `log` has returned. Any thread may log. At
    the end of the `with`, the directory says how the run ended.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        process: ProcessMark,
        *,
        durable: bool,
        sinks: Iterable[Sink] = (),
        secrets: Secrets | None = None,
        seconds: float = 0.0,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.dir = folder
        self.id = manifest.id
        self.name = manifest.name
        self.manifest = manifest
        self.secrets = secrets or Secrets()
        # What times in the directory count from, on the clock of this process.
        self.began = perf_counter() - seconds
        self._process = process
        self._metrics = Appender(str(folder / METRICS), durable=durable)
        self._events = Appender(str(folder / EVENTS), durable=durable)
        self._counts = {name: count(first) for name, first in (counts or {}).items()}
        self._last_calls: list[Callable[[], None]] = []
        self._failure: Exception | None = None
        self._ended = False
        self._interrupting: tuple[type[Exception], ...] = ()
        self._heartbeat = Heartbeat(folder / STATUS)
        if not seconds:
            self.write(BeganLine(time=0.0))
        self._feeds = [Feed(sink, folder, manifest) for sink in sinks]

    def log(self, name: str, value: object, step: int | None = None) -> None:
        """Keep one number under a name.

        Args:
            value: a number, or an array or tensor without axes. NaN and infinity are kept too.
            step: where it belongs; without one, the points of each name are counted from 0.

        Raises:
            InvalidInput: the value is no number, or the name no string.
            RunNotWritten: this point, or something before it, could not be written.
        """
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise InvalidInput(
                f"a number was logged under {shown(name):.80}; a string of 1 to {_LONGEST_NAME} "
                "characters is wanted."
            )
        if self._ended:
            raise RunNotWritten(
                f"`{name:.80}` was logged after the run `{self.id}` had ended. Log inside its "
                "`with`, or start another run."
            )
        number = as_number(value, name)
        counts = self._counts
        at = next(counts.setdefault(name, count())) if step is None else as_step(step, name)
        time = self.seconds()
        self.write(MetricLine(name=text_out(name), step=at, value=number_out(number), time=time))
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def write(self, line: EventLine | MetricLine) -> None:
        """Keep one line; a failure is raised by the next `log`, or at the end of the run.

        So a full disk does not stop a node, and hides no error of its own.
        """
        file = self._metrics if type(line) is MetricLine else self._events
        try:
            file.append(encoded(self._hidden(line)))
        except (OSError, ValueError) as error:
            if self._failure is None:
                name = METRICS if file is self._metrics else EVENTS
                self._failure = not_written(self.dir / name, error)
                self._failure.__cause__ = error

    def attempt(self, call: Callable[[], None]) -> None:
        """Let `call` write in the middle of other work; a failure is raised as in `write`."""
        for trouble in _caught(call):
            self._failure = self._failure or trouble

    def record_graph(self, record: GraphRecord) -> None:
        """Keep nodes and edges, in place of those kept before."""
        self._write_whole(self.dir / GRAPH, {"format": FORMAT, **to_builtins(record)})

    def record_modules(self, flows: Iterable[ModuleFlow]) -> None:
        """Keep what was executed inside the nodes, in place of what was kept before."""
        self._write_whole(self.dir / MODULES, {"format": FORMAT, "modules": list(flows)})

    def record_diagnostics(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep what the compiler found, in place of what was kept before."""
        folder = self.dir / DIAGNOSTICS
        try:
            make_folder(str(folder))
        except OSError as error:
            raise not_written(folder, error) from error
        found = {"format": FORMAT, "diagnostics": list(diagnostics)}
        self._write_whole(folder / COMPILE, found)

    def diagnostics_file(self, name: str) -> RowFile:
        """Begin a file of lines beside the diagnostics: `name`, or `name-2` where that is taken."""
        folder = self.dir / DIAGNOSTICS
        try:
            make_folder(str(folder))
            for number in count(1):
                path = folder / numbered(name, number)
                with suppress(FileExistsError):
                    path.touch(0o600, exist_ok=False)
                    return RowFile(str(path), number)
        except OSError as error:
            raise not_written(folder / name, error) from error
        raise AssertionError  # numbers do not end

    def write_diagnostics(self, name: str, value: Mapping[str, object]) -> None:
        """Keep a mapping beside the diagnostics as a whole file, in place of one kept before."""
        self._write_whole(self.dir / DIAGNOSTICS / name, {"format": FORMAT, **numbers_out(value)})

    def at_end(self, call: Callable[[], None]) -> None:
        """Call `call` at the end of the run; its error hides no other one."""
        self._last_calls.append(call)

    def interrupted_by(self, *kinds: type[Exception]) -> None:
        """Let errors of these kinds count as an interruption, as Ctrl-C does, not as a failure."""
        self._interrupting += kinds

    def finish(self, error: BaseException | None = None) -> None:
        """Write how the run ended, and bring all of it to the disk; nothing can be logged after.

        In a forked child nothing happens: the run is its parent's.

        Args:
            error: what it ended with; troubles in writing become notes on it.

        Raises:
            RunNotWritten: there is no `error`, and something could not be written.
        """
        if self._ended or os.getpid() != self._process.pid:
            return
        self._ended = True
        troubles = [trouble for call in self._last_calls for trouble in _caught(call)]
        if self._failure is not None:
            troubles.insert(0, self._failure)
        self._heartbeat.stop()
        for file in (self._metrics, self._events):
            troubles += _caught(lambda file=file: file.close(durable=True))  # type: ignore[misc]
        ended_with = error or (troubles[0] if troubles else None)
        standing = standing_after(ended_with, self._interrupting, self.secrets.text)
        try:
            write_status(self.dir, self._process, self.manifest.created_at, standing)
        except OSError as refusal:
            troubles.append(not_written(self.dir / STATUS, refusal))
        for feed in self._feeds:
            feed.end(standing)
        for feed in self._feeds:
            feed.finish()
        if troubles and error is None:
            raise troubles[0]
        for trouble in troubles:
            if trouble is not error and error is not None:
                with suppress(Exception):  # an error that takes no notes is raised all the same
                    error.add_note(f"the run `{self.id}` is not whole: {trouble}")

    def seconds(self) -> float:
        """Return the time of now, as times in the directory count."""
        return perf_counter() - self.began

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish(error)

    def __repr__(self) -> str:
        """Name the run and where it is."""
        return f"<Run {self.id} in {self.dir}>"

    def _hidden(self, value: object) -> object:
        return self.secrets.hide(to_builtins(value)) if self.secrets else value

    def _write_whole(self, path: Path, value: object) -> None:
        try:
            write_json(path, self._hidden(value))
        except OSError as error:
            raise not_written(path, error) from error


def write_json(path: Path, value: object) -> None:
    """Keep a value as a whole file."""
    write_atomically(str(path), [encoded(value)])


def _caught(call: Callable[[], None]) -> list[Exception]:
    try:
        call()
    except Exception as trouble:
        return [trouble]
    return []


def not_written(path: Path, error: Exception) -> RunNotWritten:
    """Return the error that says why something of a run could not be written."""
    reason = getattr(error, "strerror", None) or str(error)
    return RunNotWritten(
        f"`{path}` cannot be written: {reason}. What was logged before is kept; make room, or "
        "start the run with another `root`."
    )

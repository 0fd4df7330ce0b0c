"""Hands runs to sinks, from their directories: after the fact, or while a run goes on.

A `Feed` reads what the run has written, on a thread of its own. So `log` costs what it costs
without a sink, a sink that hangs holds up nothing, and what a sink gets is what the record says.
"""

import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from soma.core import Diagnostic
from soma.errors import InvalidInput, SinkWarning
from soma.files import Appender, make_folder
from soma.tracking._layout import DIAGNOSTICS, METRICS, SINKS
from soma.tracking._lines import encode
from soma.tracking._plain import text_out
from soma.tracking._points import Manifest
from soma.tracking._record import RunRecord, point_of
from soma.tracking._sink import Point, Sink
from soma.tracking._status import Standing
from soma.tracking._tail import Tail

_SECONDS = 1.0  # between two looks
_PATIENCE = 30.0  # seconds without a sign of life, at the end of a run
_MOST_POINTS = 1000  # in one call
_MOST_TOLD = 1000  # characters of an error

# The run that a sink takes, by process and sink: a forked child has sinks of its own.
_taken: dict[tuple[int, int], list[str]] = {}


def tell(
    sink: Sink, record: RunRecord, flags: Sequence[Mapping[str, Any]], standing: Standing
) -> int:
    """Hand all that a run's directory holds to a sink, and return how many points that were.

    Raises:
        InvalidInput: the sink takes another run at this time.
    """
    with _alone(sink, record.id):
        # The manifest is a file; the id that tools make paths of is the name of the directory.
        sink.start(replace(record.manifest, id=record.id))
        count = 0
        for points in _points(Tail(record.dir / METRICS)):
            sink.points(points)
            count += len(points)
        if flags:
            sink.findings(flags)
        sink.close(standing)
    return count


class Feed:
    """Hands one run to one sink while it goes on.

    Args:
        patience: seconds without a sign of life after which `finish` waits no longer.
    """

    def __init__(
        self, sink: Sink, folder: Path, manifest: Manifest, *, patience: float = _PATIENCE
    ) -> None:
        self._sink = sink
        self._folder = folder
        self._manifest = manifest
        self._patience = patience
        self._ended = threading.Event()
        self._standing = Standing("running")
        self._moved = monotonic()
        self._told = False
        self._thread = threading.Thread(target=self._work, name="soma-sink", daemon=True)
        self._thread.start()

    def end(self, standing: Standing) -> None:
        """Say that nothing more comes."""
        self._standing = standing
        self._moved = monotonic()
        self._ended.set()

    def finish(self) -> None:
        """Wait until the sink has taken all, or gives no sign of life any more."""
        while self._thread.is_alive():
            self._thread.join(min(self._patience, _SECONDS))
            if self._thread.is_alive() and monotonic() - self._moved > self._patience:
                self._tell(f"it gave no sign of life for {self._patience:g} seconds")
                return

    def _work(self) -> None:
        try:
            with _alone(self._sink, self._manifest.id):
                self._hand_over()
        except BaseException as error:  # `SystemExit` too: nobody else would hear of it
            self._tell(f"{type(error).__name__}: {_message(error)}")

    def _hand_over(self) -> None:
        self._sink.start(self._manifest)
        tail = Tail(self._folder / METRICS)
        ended = False
        while not ended:
            ended = self._ended.wait(_SECONDS)
            for points in _points(tail):
                self._sink.points(points)
                self._moved = monotonic()
        flags = RunRecord(self._folder).flags()
        if flags:
            self._sink.findings(flags)
        self._sink.close(self._standing)

    def _tell(self, reason: str) -> None:
        """Tell once that the sink is left alone: in the record, and as a warning."""
        if self._told:
            return
        self._told = True
        found = Diagnostic(
            level="warning",
            code="SINK",
            node=None,
            message=text_out(
                f"`{type(self._sink).__name__}` takes no more of the run `{self._manifest.id}`: "
                f"{reason}"[:_MOST_TOLD]
            ),
            help="the run's directory has all of it; `soma export` brings it over later",
        )
        with suppress(OSError, ValueError):  # a full disk may be what the sink fails by
            make_folder(str(self._folder / DIAGNOSTICS))
            with Appender(str(self._folder / DIAGNOSTICS / SINKS)) as file:
                file.append(encode(found))
        with suppress(SinkWarning):  # where warnings are errors: no sink stops a training
            warnings.warn(f"{found.message}. But {found.help}.", SinkWarning, stacklevel=2)


@contextmanager
def _alone(sink: Sink, run: str) -> Iterator[None]:
    """Let a sink take one run at a time: of two, the points of one would go to the other."""
    key, mine = (os.getpid(), id(sink)), [run]
    first = _taken.setdefault(key, mine)  # in one step, whichever thread asks
    if first is not mine:
        raise InvalidInput(
            f"this sink takes the run `{first[0]}` at this time; make another "
            f"`{type(sink).__name__}(...)` for each run."
        )
    try:
        yield
    finally:
        del _taken[key]


def _points(tail: Tail) -> Iterator[list[Point]]:
    while lines := tail.read():
        found = [Point(*point) for line in lines if (point := point_of(line)) is not None]
        for first in range(0, len(found), _MOST_POINTS):  # each call is a sign of life
            yield found[first : first + _MOST_POINTS]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a message that cannot be had
        return ""

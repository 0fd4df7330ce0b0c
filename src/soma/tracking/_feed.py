"""Hands a run to a sink from its directory: afterwards with `tell`, or live with a `Feed`.

A `Feed` reads what the run has written, on a thread of its own. So a sink does not slow `log`
down, a sink that hangs does not hold up the run, and a sink gets exactly what the record says.
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
from soma.tracking._line_reading import point_of
from soma.tracking._lines import encode
from soma.tracking._plain import text_out
from soma.tracking._points import Manifest
from soma.tracking._record import RunRecord
from soma.tracking._sink import Point, Sink
from soma.tracking._status import Standing
from soma.tracking._tail import Tail

_SECONDS = 1.0  # between two looks at the file
_PATIENCE = 30.0  # seconds without a sign of life, at the end of a run
_MOST_POINTS = 1000  # in one call
_LONGEST_REASON = 1000  # characters of an error

# The run that a sink takes, by process and sink: a forked child has sinks of its own.
_taken: dict[tuple[int, int], list[str]] = {}


def tell(
    sink: Sink, record: RunRecord, flags: Sequence[Mapping[str, Any]], standing: Standing
) -> int:
    """Hand a run's whole directory to a sink, and return how many points there were.

    Raises:
        InvalidInput: the sink takes another run at this time.
    """
    with _alone(sink, record.id):
        # Tools make paths of the id; the manifest may hold any text, the folder's name is safe.
        sink.start(replace(record.manifest, id=record.id))
        count = 0
        for points in _batches(Tail(record.dir / METRICS)):
            sink.points(points)
            count += len(points)
        if flags:
            sink.findings(flags)
        sink.close(standing)
    return count


class Feed:
    """Hands one run to one sink while the run goes on.

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
        self._last_sign = monotonic()
        self._gave_up = False
        self._thread = threading.Thread(target=self._work, name="soma-sink", daemon=True)
        self._thread.start()

    def end(self, standing: Standing) -> None:
        """Say that nothing more comes."""
        self._standing = standing
        self._last_sign = monotonic()
        self._ended.set()

    def finish(self) -> None:
        """Wait until the sink has taken everything, or gives no more sign of life."""
        while self._thread.is_alive():
            self._thread.join(min(self._patience, _SECONDS))
            if self._thread.is_alive() and monotonic() - self._last_sign > self._patience:
                self._give_up(f"it gave no sign of life for {self._patience:g} seconds")
                return

    def _work(self) -> None:
        try:
            with _alone(self._sink, self._manifest.id):
                self._hand_over()
        except BaseException as error:  # `SystemExit` too: nobody else would see it
            self._give_up(f"{type(error).__name__}: {_message(error)}")

    def _hand_over(self) -> None:
        self._sink.start(self._manifest)
        tail = Tail(self._folder / METRICS)
        ended = False
        while not ended:
            ended = self._ended.wait(_SECONDS)
            for points in _batches(tail):
                self._sink.points(points)
                self._last_sign = monotonic()
        flags = RunRecord(self._folder).flags()
        if flags:
            self._sink.findings(flags)
        self._sink.close(self._standing)

    def _give_up(self, reason: str) -> None:
        """Say once, in the record and as a warning, that the sink gets no more of the run."""
        if self._gave_up:
            return
        self._gave_up = True
        found = Diagnostic(
            level="warning",
            code="SINK",
            node=None,
            message=text_out(
                f"`{type(self._sink).__name__}` takes no more of the run `{self._manifest.id}`: "
                f"{reason}"[:_LONGEST_REASON]
            ),
            help="the run's directory has all of it; `soma export` brings it over later",
        )
        with suppress(OSError, ValueError):  # a full disk may be why the sink failed
            make_folder(str(self._folder / DIAGNOSTICS))
            with Appender(str(self._folder / DIAGNOSTICS / SINKS)) as file:
                file.append(encode(found))
        with suppress(SinkWarning):  # where warnings are errors; a sink never stops a training
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


def _batches(tail: Tail) -> Iterator[list[Point]]:
    while lines := tail.read():
        found = [Point(*point) for line in lines if (point := point_of(line)) is not None]
        for first in range(0, len(found), _MOST_POINTS):  # each call is a sign of life
            yield found[first : first + _MOST_POINTS]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own `__str__` fails
        return ""

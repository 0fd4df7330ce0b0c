"""How a run stands: written by its process, judged by whoever reads it.

A run that says `running` is believed as long as its process lives; from another machine, as
long as the file was touched of late.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msgspec import convert, json

from soma.files import read_json, write_atomically
from soma.tracking._heartbeat import STALE_SECONDS
from soma.tracking._layout import FORMAT, STATUS
from soma.tracking._plain import text_out
from soma.tracking._points import State
from soma.tracking._process import ProcessMark, is_gone, is_here

_ENDED: tuple[Literal["completed", "failed", "interrupted"], ...] = (
    "completed",
    "failed",
    "interrupted",
)
_MOST_ERROR = 4000  # characters of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What `status.json` holds; times are seconds since 1970."""

    format: int
    state: str
    pid: int
    process_started: str | None
    host: str
    space: str | None = None
    started_at: float
    ended_at: float | None = None
    error: str | None = None

    @property
    def process(self) -> ProcessMark:
        """The process that wrote it."""
        return ProcessMark(
            pid=self.pid, started=self.process_started, host=self.host, space=self.space
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a run, and why it is that."""

    state: State
    error: str | None = None
    ended_at: float | None = None


def write_status(
    folder: Path,
    process: ProcessMark,
    started_at: float,
    standing: Standing,
) -> None:
    """Say how the run of this process stands, so that it holds through a power cut."""
    status = Status(
        format=FORMAT,
        state=standing.state,
        pid=process.pid,
        process_started=process.started,
        host=process.host,
        space=process.space,
        started_at=started_at,
        ended_at=standing.ended_at,
        error=standing.error,
    )
    write_atomically(str(folder / STATUS), [json.encode(status)], durable=True)


def standing(folder: Path) -> Standing:
    """Return how the run in `folder` stands, as far as can be told from here."""
    try:
        found = read_json(folder / STATUS)
        refusal = newer(found)
        if refusal is not None:
            return Standing("unreadable", f"`{STATUS}` {refusal}")
        status = convert(found, Status)
        touched = (folder / STATUS).stat().st_mtime
    except (OSError, ValueError) as error:
        return Standing("unreadable", f"`{STATUS}` cannot be read: {error}")
    for state in _ENDED:
        if status.state == state:
            return Standing(state, status.error, status.ended_at)
    if status.state != "running":
        return Standing("unreadable", f"`{STATUS}` holds an unknown state: {status.state[:80]!r}")
    if is_here(status.process):
        gone = is_gone(status.process)
        told = f"process {status.pid} ended and did not say how"
    else:
        gone = time.time() - touched > STALE_SECONDS
        told = f"nothing was heard from `{status.host}` for {STALE_SECONDS:.0f} seconds"
    return Standing("crashed", told, touched) if gone else Standing("running")


def newer(found: object) -> str | None:
    """Return why a file of JSON is not for this version of soma; None if it is."""
    number = found.get("format") if isinstance(found, dict) else None
    if type(number) is not int:
        return "has no format number, so it is of no run"
    if number > FORMAT:
        return f"is of format {number}; this soma reads {FORMAT}. Install a newer one"
    return None


def standing_after(
    error: BaseException | None,
    interrupting: tuple[type[Exception], ...] = (),
    hidden: Callable[[str], str] = str,
) -> Standing:
    """Return how a run stands that has just ended; some kinds of errors may only stop a run."""
    told = None if error is None else _told(error, hidden)
    return Standing(_state_after(error, interrupting), told, time.time())


def _state_after(error: BaseException | None, interrupting: tuple[type[Exception], ...]) -> State:
    if error is None:
        return "completed"
    # What is no `Exception`, as Ctrl-C and `sys.exit`, ends a run from outside.
    is_failure = isinstance(error, Exception) and not isinstance(error, interrupting)
    return "failed" if is_failure else "interrupted"


def _told(error: BaseException, hidden: Callable[[str], str]) -> str:
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:  # its own `__str__` fails
        message = ""
    return text_out(hidden(f"{name}: {message}")[:_MOST_ERROR] if message else name)

"""`continue_run`: takes up a run again that has ended or crashed, in the same directory."""

from array import array
from os import PathLike

from soma.errors import RunBusy, RunNotWritten
from soma.files import locked
from soma.tracking._layout import LOCK
from soma.tracking._lines import ContinuedLine
from soma.tracking._process import ProcessMark
from soma.tracking._record import RunRecord
from soma.tracking._run import Run, not_written
from soma.tracking._secrets import Secrets
from soma.tracking._status import Standing, write_status


def continue_run(
    folder: str | PathLike[str], *, seconds: float = 0.0, secrets: Secrets | None = None
) -> Run:
    """Take up a run again: it is `running`, and what comes is added to what is there.

    Times go on after the last one in the directory, and points without a step after their last.

    Args:
        folder: of the run.
        seconds: the time that the run had reached at least.
        secrets: what no file may hold.

    Raises:
        UnknownRun: there is no such directory.
        RunBusy: the run's process lives, or another one takes it up at this moment.
        RunNotWritten: the directory cannot be written, or is not whole.
    """
    record = RunRecord(folder)
    process = ProcessMark.own()
    try:
        with locked(str(record.dir / LOCK)) as got:
            standing = record.standing()
            if standing.state == "unreadable":
                raise RunNotWritten(f"the run `{record.id}` cannot go on: {standing.error}.")
            if not got or standing.state == "running":
                raise RunBusy(
                    f"the run `{record.id}` cannot be taken up: it goes on in another process, or "
                    "elsewhere in this one. Wait for its end, or stop it first."
                )
            write_status(record.dir, process, record.manifest.created_at, Standing("running"))
            run = Run(
                record.dir,
                record.manifest,
                process,
                durable=False,
                secrets=secrets,
                seconds=max(seconds, _seconds(record)),
                counts={name: _next(record, name) for name in record.metric_names()},
            )
    except OSError as error:
        if isinstance(error, RunNotWritten):
            raise
        raise not_written(record.dir, error) from error
    run.write(ContinuedLine(time=run.seconds()))
    return run


def _seconds(record: RunRecord) -> float:
    """Return the last time in the directory."""
    times = array("d", [0.0])
    for event in record.events():
        start, took, time = (event.get(name) for name in ("start", "seconds", "time"))
        if isinstance(start, int | float) and isinstance(took, int | float):
            times.append(start + took)
        if isinstance(time, int | float):
            times.append(time)
    for name in record.metric_names():
        times.append(record.metric_series(name)[-1]["time"])
    return max(times)


def _next(record: RunRecord, name: str) -> int:
    last: int = record.metric_series(name)[-1]["step"]
    return last + 1

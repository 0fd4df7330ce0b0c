"""`export_run`: takes a run to another tool from its directory, during the run or long after."""

from os import PathLike

from soma.errors import NotRecorded
from soma.health import HealthRecord
from soma.tracking import RunRecord, Sink, tell


def export_run(folder: str | PathLike[str], sink: Sink) -> int:
    """Hand a run's whole directory to a sink, and return how many points there were.

    `sink.where` says where they went. Of a run that was killed, or that still goes on, the sink
    gets what is written so far.

    >>> from tempfile import mkdtemp
    >>> import soma
    >>> from soma.integrations.sinks import CsvSink, export_run
    >>> with soma.track_run("by hand", root=mkdtemp()) as run:
    ...     run.log("loss", 0.5)
    >>> export_run(run.dir, CsvSink(mkdtemp()))
    1

    Raises:
        UnknownRun: there is no such directory.
        NotRecorded: the run's manifest or its status cannot be read.
    """
    record = RunRecord(folder)
    standing = record.standing()
    if standing.state == "unreadable":
        raise NotRecorded(
            f"the run `{record.id}` cannot be handed over: {standing.error}. `soma check` lists "
            "all that is wrong with it."
        )
    return tell(sink, record, HealthRecord(record).flags(), standing)

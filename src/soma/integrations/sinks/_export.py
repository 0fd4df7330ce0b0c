"""Takes a run to another tool from its directory alone, during it or long after."""

from os import PathLike

from soma.errors import NotRecorded
from soma.health import HealthRecord
from soma.tracking import RunRecord, Sink, tell


def export_run(folder: str | PathLike[str], sink: Sink) -> int:
    """Hand all that a run's directory holds to a sink, and return how many points that were.

    `sink.where` says where they went. A run that was killed is handed over as far as it got, and
    one that goes on as far as it is.

    >>> from tempfile import mkdtemp
    >>> import soma
    >>> from soma.integrations.sinks import CsvSink, export_run
    >>> with soma.track_run("by hand", root=mkdtemp()) as run:
    ...     run.log("loss", 0.5)
    >>> export_run(run.dir, CsvSink(mkdtemp()))
    1

    Raises:
        UnknownRun: there is no such directory.
        NotRecorded: the directory does not tell what the run was, or how it stands.
    """
    record = RunRecord(folder)
    standing = record.standing()
    if standing.state == "unreadable":
        raise NotRecorded(
            f"the run `{record.id}` cannot be handed over: {standing.error}. `soma check` lists "
            "all that is wrong with it."
        )
    return tell(sink, record, HealthRecord(record).flags(), standing)

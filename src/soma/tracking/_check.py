"""Says what is wrong with a run directory, for `soma check RUN`."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from soma.tracking._journal_reading import journal_line_of
from soma.tracking._layout import (
    COMPILE,
    DIAGNOSTICS,
    EVENTS,
    GRAPH,
    JOURNAL,
    METRICS,
    MODULES,
    SINKS,
)
from soma.tracking._line_reading import diagnostic_of, event_of, point_of
from soma.tracking._record import RunRecord
from soma.tracking._whole_files import read_diagnostics, read_graph, read_modules

_MOST_TOLD = 5  # bad lines of one file


def check_run(folder: str | PathLike[str]) -> list[str]:
    """Return what is wrong with a run directory, a sentence each; nothing if it is whole.

    Raises:
        UnknownRun: there is no such directory.
    """
    record = RunRecord(folder)
    standing = record.standing()
    problems = []
    if standing.state == "unreadable":
        problems.append(f"the run is unreadable: {standing.error}")
    elif standing.state == "running":
        problems.append("the run has not ended yet")
    elif standing.state == "crashed":
        problems.append(f"the run did not end: {standing.error}")
    problems += _of_lines(record.dir / METRICS, point_of)
    problems += _of_lines(record.dir / EVENTS, event_of)
    for path, parse in (
        (record.dir / JOURNAL, journal_line_of),
        (record.dir / DIAGNOSTICS / SINKS, diagnostic_of),
    ):
        if path.exists():
            problems += _of_lines(path, parse)
    for name, read in (
        (GRAPH, read_graph),
        (MODULES, read_modules),
        (f"{DIAGNOSTICS}/{COMPILE}", read_diagnostics),
    ):
        if (record.dir / name).exists():  # a run without a graph has none of them
            problems += _of_file(record.dir, name, read)
    return problems


def _of_file(folder: Path, name: str, read: Callable[[Path], object]) -> list[str]:
    try:
        read(folder)
    except (OSError, ValueError) as error:
        return [f"`{name}` cannot be read: {error}"]
    return []


def _of_lines(path: Path, parse: Callable[[bytes], object]) -> list[str]:
    if path.exists() and not path.is_file():  # a pipe of that name would never end
        return [f"`{path.name}` is no file"]
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        return [f"`{path.name}` cannot be read: {error.strerror}"]
    problems = []
    bad = [number for number, line in enumerate(lines[:-1], 1) if line and parse(line) is None]
    if bad:
        told = ", ".join(map(str, bad[:_MOST_TOLD])) + (", …" if len(bad) > _MOST_TOLD else "")
        count = f"{len(bad)} bad line{'' if len(bad) == 1 else 's'}"
        problems.append(f"`{path.name}` has {count}: {told}")
    if lines[-1]:
        problems.append(f"`{path.name}` ends in an unfinished line, {len(lines)}")
    return problems

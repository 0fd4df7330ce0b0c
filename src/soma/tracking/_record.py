"""`RunRecord`: reads a run directory, also beside its writer, with nothing but this room.

What is broken is left out: a line, a file, a run among others. Nothing is repaired.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from soma.core import Diagnostic, ModuleFlow
from soma.errors import UnknownRun
from soma.files import TEMPORARY, is_folder, read_lines
from soma.tracking._graph_record import GraphRecord
from soma.tracking._journal_lines import JournalLine
from soma.tracking._journal_reading import read_journal
from soma.tracking._layout import (
    DIAGNOSTICS,
    EVENTS,
    JOURNAL,
    MANIFEST,
    METRICS,
    SINKS,
    STATUS,
    runs_folder,
)
from soma.tracking._line_reading import diagnostic_of, event_of, node_line_of, point_of
from soma.tracking._lines import NodeLine
from soma.tracking._points import CacheActivity, Manifest, State, Timing
from soma.tracking._status import Standing, standing
from soma.tracking._whole_files import (
    read_diagnostics,
    read_flags,
    read_graph,
    read_manifest,
    read_modules,
)

T = TypeVar("T")
Columns = tuple["array[int]", "array[float]", "array[float]"]  # step, value, time


class RunRecord:
    """One run, read from its directory; each call reads what is there by now.

    >>> from tempfile import mkdtemp
    >>> from soma.tracking import track_run
    >>> with track_run("by hand", root=mkdtemp()) as run:
    ...     run.log("loss", 0.5)
    >>> record = RunRecord(run.dir)
    >>> record.state, [point["value"] for point in record.metric_series("loss")]
    ('completed', [0.5])

    Args:
        folder: of the run, as `run.dir` names it.

    Raises:
        UnknownRun: there is no such directory.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.dir = Path(folder).absolute()
        if not is_folder(self.dir):
            raise UnknownRun(
                f"there is no run directory at {str(folder)!r}. `soma.runs()` lists those that "
                "there are."
            )
        self.id = self.dir.name
        self._refusal: str | None = None
        try:
            self._manifest = read_manifest(self.dir)
        except (OSError, ValueError) as error:
            self._refusal = f"`{MANIFEST}` cannot be read: {error}"
            self._manifest = _without_manifest(self.dir)
        self._read: tuple[int, dict[str, Columns]] = (-1, {})  # at which size, and what

    @property
    def manifest(self) -> Manifest:
        """What the run was started as; of an unreadable run little more than its id."""
        return self._manifest

    @property
    def name(self) -> str:
        """What people call the run."""
        return self._manifest.name

    @property
    def state(self) -> State:
        """How the run stands now."""
        return self.standing().state

    @property
    def error(self) -> str | None:
        """Why the run is `failed`, `interrupted`, `crashed` or `unreadable`."""
        return self.standing().error

    def standing(self) -> Standing:
        """Return state, error and time of the end, from one look."""
        if self._refusal is not None:
            return Standing("unreadable", self._refusal)
        return standing(self.dir)

    def graph(self) -> GraphRecord | None:
        """Return nodes and edges; None where the run has no graph."""
        return _or(None, read_graph, self.dir)

    def modules(self) -> tuple[ModuleFlow, ...]:
        """Return what was executed inside the nodes."""
        return _or((), read_modules, self.dir)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what the compiler found, and which sinks failed."""
        found = (diagnostic_of(line) for line in _lines(self.dir / DIAGNOSTICS / SINKS))
        failed = (one for one in found if one is not None)
        compiled: tuple[Diagnostic, ...] = _or((), read_diagnostics, self.dir)
        return (*compiled, *failed)

    def flags(self) -> list[dict[str, Any]] | None:
        """Return what an audit flagged, by node; None where none came to its end."""
        return _or(None, read_flags, self.dir)

    def events(self) -> list[dict[str, Any]]:
        """Return what happened, in order, each a mapping with `event` for its kind."""
        found = map(event_of, _lines(self.dir / EVENTS))
        return [event for event in found if event is not None]

    def metric_names(self) -> list[str]:
        """Return the names that numbers were logged under, in the order of their first ones."""
        return [*self._columns()]

    def metric_series(self, name: str) -> list[Mapping[str, Any]]:
        """Return the points of one name in the order they came, with `step`, `value`, `time`."""
        columns = self._columns().get(name)
        if columns is None:
            return []
        return [
            {"step": step, "value": value, "time": time}
            for step, value, time in zip(*columns, strict=True)
        ]

    def timings(self) -> list[Timing]:
        """Return the turns of the nodes in the order they ended.

        A flow that is resumed walks through all its nodes again; turns in which one did no more
        than find what it had done before are left out.
        """
        return [
            Timing(
                node=line.node,
                phase=line.phase,
                start=line.start,
                seconds=line.seconds,
                cached=line.cached,
                thread=line.thread,
                error=line.error,
            )
            for line in self._node_lines()
        ]

    def journal(self) -> list[JournalLine]:
        """Return what a flow did outside, in order; nothing where the run is of no flow."""
        return _or([], read_journal, self.dir)

    def cache_activity(self) -> list[CacheActivity]:
        """Return how often each node was found in the cache, for those that were looked for."""
        looked = [line for line in self._node_lines() if line.cached or line.why is not None]
        hits = Counter(line.node for line in looked if line.cached)
        misses = Counter(line.node for line in looked if not line.cached)
        why = {line.node: line.why for line in looked if not line.cached}
        return [
            CacheActivity(node=node, hits=hits[node], misses=misses[node], why=why.get(node))
            for node in dict.fromkeys(line.node for line in looked)
        ]

    def __repr__(self) -> str:
        """Name the run and where it is."""
        return f"<RunRecord {self.id} in {self.dir}>"

    def _node_lines(self) -> list[NodeLine]:
        # A long training has a line for each step, and few of nodes.
        lines = (line for line in _lines(self.dir / EVENTS) if b'"node"' in line)
        found = map(node_line_of, lines)
        replays = (self.dir / JOURNAL).exists()
        return [line for line in found if line is not None and not (replays and line.cached)]

    def _columns(self) -> dict[str, Columns]:
        """Return all points by name; they are read again when the file has grown."""
        path = self.dir / METRICS
        try:
            size = path.stat().st_size
        except OSError:
            size = 0
        if self._read[0] != size:
            found: dict[str, Columns] = {}
            for line in _lines(path):
                point = point_of(line)
                if point is not None:
                    name, step, value, time = point
                    if name not in found:
                        found[name] = array("q"), array("d"), array("d")
                    steps, values, times = found[name]
                    steps.append(step)
                    values.append(value)
                    times.append(time)
            self._read = size, found
        return self._read[1]


def run_records(root: str | PathLike[str] = ".soma") -> list[RunRecord]:
    """Return the runs below `root`, the newest first; broken ones too, as `unreadable`."""
    found = []
    try:
        entries = [path for path in runs_folder(root).iterdir() if is_folder(path)]
    except OSError:
        return []
    for path in entries:
        try:
            if not _is_being_made(path):
                found.append(RunRecord(path))
        except (OSError, UnknownRun):  # removed in the meantime
            continue
    return sorted(found, key=lambda run: (run.manifest.created_at, run.id), reverse=True)


def _or(otherwise: T, read: Callable[[Any], T], given: object) -> T:
    """Return what `read` gives, or `otherwise` for what is missing or broken."""
    try:
        return read(given)
    except (OSError, ValueError):
        return otherwise


def _lines(path: Path) -> list[bytes]:
    return _or([], read_lines, path)


def _without_manifest(folder: Path) -> Manifest:
    try:
        changed = folder.stat().st_mtime
    except OSError:
        changed = 0.0
    return Manifest(
        id=folder.name, name=folder.name, kind="unknown", tags=(), params={}, created_at=changed
    )


def _is_being_made(folder: Path) -> bool:
    """Whether a directory holds no more than the first moment of a run."""
    names = [path.name for path in folder.iterdir()]
    return all(name == STATUS or name.startswith(TEMPORARY) for name in names)

"""How a run directory is laid out: `<root>/runs/<id>/` and the names of what is inside.

manifest.json              what the run was started as, and where
status.json                how it stands; its time of change is the heartbeat
graph.json                 nodes and edges
modules.json               what was executed inside the nodes
events.jsonl               what happened, a line each: `_lines.py`
metrics.jsonl              what was logged, a line each
journal.jsonl              what a flow did outside, a line each: `_journal_lines.py`
values/                    what a flow's journal names in place of holding it
lock                       held for the moment in which a run is taken up again
diagnostics/compile.json   what the compiler found
diagnostics/sinks.jsonl    which sinks failed
diagnostics/audit.jsonl    what an audit measured; of the run's second audit: audit-2.jsonl
diagnostics/health.json    the flags of each node at its end; of the second: health-2.json
"""

from os import PathLike
from pathlib import Path

FORMAT = 1  # of the whole directory; a reader refuses a newer one

MANIFEST = "manifest.json"
STATUS = "status.json"
GRAPH = "graph.json"
MODULES = "modules.json"
EVENTS = "events.jsonl"
METRICS = "metrics.jsonl"
JOURNAL = "journal.jsonl"
VALUES = "values"
LOCK = "lock"
DIAGNOSTICS = "diagnostics"
COMPILE = "compile.json"
HEALTH = "health.json"
SINKS = "sinks.jsonl"


def numbered(name: str, number: int) -> str:
    """Return the name of a file of which a run may hold several: `audit.jsonl`, `audit-2.jsonl`."""
    stem, dot, ending = name.partition(".")
    return name if number == 1 else f"{stem}-{number}{dot}{ending}"


def runs_folder(root: str | PathLike[str]) -> Path:
    """Return the folder that holds a directory for each run below `root`."""
    return Path(root) / "runs"

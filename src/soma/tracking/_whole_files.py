"""Reads the files of a run that are written whole, each into the type that it should hold.

Each function takes the run's directory, and raises `OSError` where the file cannot be read and
`ValueError` where it holds something else.
"""

from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any, TypeVar

from msgspec import convert

from soma.core import Diagnostic, ModuleFlow
from soma.files import read_json
from soma.tracking._graph_record import GraphRecord
from soma.tracking._layout import COMPILE, DIAGNOSTICS, GRAPH, HEALTH, MANIFEST, MODULES, numbered
from soma.tracking._numbers import numbers_back
from soma.tracking._points import Manifest
from soma.tracking._status import newer

T = TypeVar("T")


def read_manifest(folder: Path) -> Manifest:
    """Return what a run was started as."""
    manifest = _read(folder / MANIFEST, None, Manifest)
    return replace(manifest, params=numbers_back(manifest.params))


def read_graph(folder: Path) -> GraphRecord:
    """Return nodes and edges."""
    graph = _read(folder / GRAPH, None, GraphRecord)
    _check_ends([node.id for node in graph.nodes], [end for edge in graph.edges for end in edge])
    return graph


def read_modules(folder: Path) -> tuple[ModuleFlow, ...]:
    """Return what was executed inside the nodes."""
    flows = _read(folder / MODULES, "modules", tuple[ModuleFlow, ...])
    for flow in flows:
        ends = [end for edge in flow.edges for end in (edge.source, edge.target)]
        _check_ends([node.id for node in flow.nodes], ends)
    return flows


def read_diagnostics(folder: Path) -> tuple[Diagnostic, ...]:
    """Return what the compiler found."""
    return _read(folder / DIAGNOSTICS / COMPILE, "diagnostics", tuple[Diagnostic, ...])


def read_flags(folder: Path) -> list[dict[str, Any]]:
    """Return what the last audit that ended flagged, by node."""
    files = (folder / DIAGNOSTICS / numbered(HEALTH, number) for number in count(1))
    *_, last = [folder / DIAGNOSTICS / HEALTH, *takewhile(Path.exists, files)]
    found = read_json(last)
    flags = found.get("flags") if isinstance(found, dict) else None
    if not isinstance(flags, list):
        raise ValueError("there are no flags in it")
    return [flag for flag in flags if isinstance(flag, dict)]


def _check_ends(nodes: list[str], ends: list[str]) -> None:
    known = set(nodes)
    if len(known) < len(nodes):
        raise ValueError("two nodes in it have the same id")
    for end in ends:
        if end not in known:
            raise ValueError(f"an edge in it ends at {end[:80]!r}, which is no node")


def _read(path: Path, part: str | None, to: type[T]) -> T:
    found = read_json(path)
    refusal = newer(found)
    if refusal is not None:
        raise ValueError(f"it {refusal}")
    if part is not None and isinstance(found, dict):
        found = found.get(part)
    return convert(found, to)

"""Filters that the tests of this folder are made of, and a way to edit bundles."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from soma import Filter, Graph


@dataclass
class Settings:
    """A dataclass that may be an argument."""

    rate: float
    names: tuple[str, ...] = ()


class Scale(Filter):
    """Multiplies by a factor."""

    def __init__(self, factor: Any = 2) -> None:
        super().__init__(factor=factor)

    def forward(self, x, state):
        return [value * self.factor for value in x]


class Center(Filter):
    """Learns the mean."""

    def fit(self, x, y=None):
        return {"mean": sum(x) / len(x), "table": np.arange(2_000.0)}

    def forward(self, x, state):
        return [value - state["mean"] for value in x]


class Holds(Filter):
    """Has any arguments, as they come."""

    def __init__(self, *values: Any, **more: Any) -> None:
        self.values = values
        self.more = more

    def forward(self, x, state):
        return x


class Total(Filter):
    """A fan-in that tells the order in which it reads."""

    def forward(self, x, state):
        return list(x)


def loaded(g: Graph, folder: Path, **options: Any) -> Graph:
    """Return a graph after it was saved and loaded."""
    g.save(folder / "g.soma")
    return Graph.load(folder / "g.soma", **options)


def members(path: Path) -> dict[str, bytes]:
    """Return what a bundle holds."""
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """Write a bundle again with its members changed."""
    found = members(path)
    change(found)
    other = path.with_name("other.soma")
    with ZipFile(other, "w", ZIP_DEFLATED) as archive:
        for name, data in found.items():
            archive.writestr(name, data)
    return other


def edited(path: Path, change: Callable[[Any], object]) -> Path:
    """Write a bundle again with its manifest changed."""

    def in_members(found: dict[str, bytes]) -> None:
        manifest = json.loads(found["manifest.json"])
        change(manifest)
        found["manifest.json"] = json.dumps(manifest).encode()

    return rewritten(path, in_members)

"""A class that has changed says so, and says what becomes of what an older one left."""

from pathlib import Path

import pytest

from soma import Filter, Graph
from soma.checkpoint import Saved
from soma.errors import CheckpointError, CheckpointWarning
from tests.checkpoint.filters import Holds


class Times(Filter):
    """What was saved."""

    def __init__(self, by: int) -> None:
        self.by = by

    def fit(self, x, y=None):
        return [1]

    def forward(self, x, state):
        return [one * self.by + state[0] for one in x]


class Migrating(Filter):
    """Its third version, with another argument and another state."""

    class_version = 3

    def __init__(self, factor: int) -> None:
        self.factor = factor

    @classmethod
    def migrate(cls, saved: Saved, from_version: int) -> None:
        if from_version < 2:
            saved.named["factor"] = saved.named.pop("by")
        if from_version < 3:
            saved.state = {"bias": saved.state[0]}

    def fit(self, x, y=None):
        return {"bias": 1}

    def forward(self, x, state):
        return [one * self.factor + state["bias"] for one in x]


class Broken(Migrating):
    """A migration that fails."""

    @classmethod
    def migrate(cls, saved: Saved, from_version: int) -> None:
        raise KeyError("no such part")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a bundle of the first version."""
    return tmp_path / "g.soma"


def saved(path: Path, filter: Filter) -> Path:
    """Save a graph of one filter."""
    Graph.somatize(filter).fit([0]).save(path)
    return path


def test_another_version_is_refused(path: Path) -> None:
    """Without a `migrate` it is an error that names node and versions."""
    saved(path, Times(3))
    found = r"`times` was saved by version 1 of `Times`, which is at 2 now and has no `migrate"
    newer = type("Times", (Times,), {"class_version": 2})
    with pytest.raises(CheckpointError, match=found):
        Graph.load(path, classes=[newer])
    with pytest.warns(CheckpointWarning, match=found):
        g = Graph.load(path, classes=[newer], strict=False)

    assert g.forward([2]) == [7]


def test_a_migration_makes_it_fit(path: Path) -> None:
    """`migrate` changes arguments and state before anything is made of them."""
    saved(path, Times(3))
    migrating = type("Times", (Migrating,), {})
    g = Graph.load(path, classes=[migrating])

    assert g.forward([2]) == [7]


def test_a_migration_that_fails_is_named(path: Path) -> None:
    """The error says which node it was."""
    saved(path, Times(3))
    broken = type("Times", (Broken,), {})
    with pytest.raises(
        CheckpointError, match=r"`times` cannot be made again: KeyError: 'no such part'"
    ):
        Graph.load(path, classes=[broken])


def test_a_filter_inside_is_migrated_too(path: Path) -> None:
    """An argument that is a filter follows the same rules."""
    saved(path, Holds(Times(3)))
    newer = type("Times", (Times,), {"class_version": 2})
    with pytest.raises(CheckpointError, match="a `Times` was saved by version 1"):
        Graph.load(path, classes=[newer])


def test_a_newer_version_is_refused(path: Path) -> None:
    """What a later class left is never given to `migrate`."""
    newer = type("Times", (Migrating,), {"class_version": 9})
    saved(path, newer(3))
    older = type("Times", (Migrating,), {"class_version": 3})
    with pytest.raises(CheckpointError, match="by version 9 of `Times`, which is at 3 now"):
        Graph.load(path, classes=[older])


def test_arguments_that_do_not_fit_are_named(path: Path) -> None:
    """A constructor that takes others is an error of the bundle, with its cause."""
    saved(path, Times(3))
    other = type("Times", (Filter,), {"__init__": lambda self: None})
    with pytest.raises(CheckpointError, match=r"`times` cannot be made again: .*'by'"):
        Graph.load(path, classes=[other])

"""Preprocessing under training: computed once, whoever asks again."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

import soma
from soma import Filter, Graph
from tests.training.filters import Dense, data

X, Y = (one.numpy() for one in data())


class Centered(Filter):
    """A scaler that counts its runs."""

    _cache_version = "1"
    runs: ClassVar[list[str]] = []

    def fit(self, x, y=None):
        Centered.runs.append("fit")
        return x.mean(axis=0)

    def forward(self, x, state):
        Centered.runs.append("forward")
        return x - state


class Squared(Centered):
    fit = Filter.fit

    def forward(self, x, state):
        Centered.runs.append("forward")
        return x * x


@pytest.fixture(autouse=True)
def no_runs() -> None:
    Centered.runs.clear()


def trained(**options: object) -> Graph:
    g = Graph.somatize(Centered() >> Squared() >> Dense(3))
    held_out = (X[:16], Y[:16])
    return g.fit(X, Y, epochs=2, seed=1, progress=False, validation=held_out, **options)


def test_a_second_training_runs_no_preprocessing() -> None:
    """Another graph with the same filters finds states, outputs and samples of them."""
    trained()
    assert "fit" in Centered.runs
    Centered.runs.clear()
    trained()

    assert Centered.runs == []


def test_a_cached_training_ends_in_the_same_weights() -> None:
    """A warm prefix changes nothing of what is trained on it."""
    graphs = [trained(), trained()]
    first, second = ([*g.parameters()] for g in graphs)

    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert np.array_equal(*(g.forward(X) for g in graphs))


def test_weights_are_trained_each_time() -> None:
    """What a fit trains is not stored: only what comes before it is."""
    g = trained()
    before = [one.clone() for one in g.parameters()]
    g.fit(X, Y, epochs=1, progress=False)

    assert not all(
        torch.equal(one, other) for one, other in zip(before, g.parameters(), strict=True)
    )


def test_why_tells_of_the_fit_and_not_of_what_it_reads_again(tmp_path: Path) -> None:
    """After a first fit a filter ran for the first time; after a second one it was stored."""
    told = []
    for _ in range(2):
        g = Graph.somatize(Centered() >> Squared() >> Dense(3), cache=tmp_path)
        g.fit(X, Y, epochs=1, progress=False, validation=(X[:16], Y[:16]))
        told += [soma.why(g, "centered"), soma.why(g, "squared")]

    assert told == [
        "`centered` ran: first time, nothing of it is stored",
        "`squared` ran: first time, nothing of it is stored",
        "`centered` did not run: its answer was stored",
        "`squared` did not run: its answer was stored",
    ]

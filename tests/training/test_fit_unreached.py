"""The one warning that names what no loss reaches, and why."""

import warnings

import pytest
import torch
from torch import nn

from soma import Graph
from soma.errors import GradientWarning, ModeError
from tests.training.filters import Dense, Rounded, Wrap, data

X, Y = data()


def two_heads() -> Graph:
    g = Graph()
    g.node("trunk", Dense(5))
    g.node("main", Dense(3))
    g.node("spare", Dense(3))
    g.connect("trunk", "main").connect("trunk", "spare")
    return g


def test_a_leaf_without_a_target_is_named() -> None:
    """A head that gets no target does not learn, and is told so."""
    with pytest.warns(GradientWarning, match="no loss reaches `spare`") as told:
        two_heads().fit(X, {"main": Y}, epochs=2)

    assert len(told) == 1
    assert told[0].filename == __file__
    assert "no target for its leaf `spare`" in str(told[0].message)


def test_what_an_opaque_node_cuts_off_is_named() -> None:
    """Modules before a step that no gradient passes do not learn."""
    g = Graph.somatize(Dense(5) >> Rounded() >> Dense(3))
    with pytest.warns(GradientWarning) as told:
        g.fit(X, Y, epochs=1)

    assert "`dense`: cut off by `rounded`, which no gradient passes" in str(told[0].message)


def test_an_output_that_is_detached_on_its_way_is_suspected() -> None:
    """Where the graph is whole, the inside of a filter is at fault."""

    class Detaching(nn.Linear):
        def forward(self, x):
            return super().forward(x.detach())

    g = Graph.somatize(Dense(5) >> Wrap(lambda shape: Detaching(*shape, 3)))
    with pytest.warns(GradientWarning, match="`dense`: its output has no part in the loss"):
        g.fit(X, Y, epochs=1)


def test_nodes_frozen_by_choice_are_not_named() -> None:
    """`requires_grad_(False)` is a decision, not a mistake."""
    g = two_heads().fit(X, epochs=0)
    g.filter("spare")._module.requires_grad_(requires_grad=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g.fit(X, {"main": Y}, epochs=1)


def test_a_loss_that_reaches_nothing_is_an_error() -> None:
    """Where the only leaf passes no gradient, nothing could ever learn."""
    with pytest.raises(ModeError, match="no trainable node reaches it"):
        Graph.somatize(Dense(3) >> Rounded()).fit(X, Y, epochs=1)


def test_a_target_for_an_opaque_leaf_is_fine_beside_another() -> None:
    """Its loss is shown and adds no gradient."""
    g = Graph()
    g.node("net", Dense(3))
    g.node("rounded", Rounded())
    g.node("head", Dense(3))
    g.connect("net", "rounded").connect("net", "head")
    g.fit(X, {"head": Y, "rounded": Y}, epochs=1)

    assert g.history[0].losses.keys() == {"head", "rounded"}


def test_shared_targets_go_to_the_leaves_that_learn() -> None:
    """One y for several leaves leaves out those that no gradient passes."""
    g = Graph()
    g.node("net", Dense(3))
    g.node("rounded", Rounded())
    g.node("head", Dense(3))
    g.connect("net", "rounded").connect("net", "head")
    g.fit(X, Y, epochs=1)

    assert list(g.history.losses) == ["head"]
    assert torch.is_tensor(g.forward(X)["rounded"])

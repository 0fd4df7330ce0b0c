"""`state()` gives what is learned as a mapping, and `load_state` takes it: whole or not at all."""

import io
from typing import Any

import pytest
import torch

from soma import Filter, Graph
from soma.errors import CheckpointWarning, InvalidInput, NotMaterialized
from tests.training.filters import Dense, Standardize, data

X, Y = data()


def fitted(seed: int = 0) -> Graph:
    """Return a trained graph."""
    torch.manual_seed(seed)
    g = Graph.somatize(Standardize() >> Dense(8) >> Dense(3), cache=None)
    return g.fit(X, Y, epochs=2, progress=False)


def test_a_state_is_nested_by_node() -> None:
    """Tensors by name for modules, what `fit` gave for plain filters."""
    state = fitted().state()

    assert list(state) == ["standardize", "dense", "dense_2"]
    assert list(state["dense"]) == ["weight", "bias"]
    assert torch.equal(state["standardize"]["mean"], X.mean(0))


def test_the_best_weights_can_be_kept() -> None:
    """A state is a copy: training goes on without it, and `load_state` goes back to it."""
    g = fitted()
    best, answer = g.state(), g.forward(X)
    g.fit(X, Y, epochs=2, progress=False)
    assert not torch.equal(g.forward(X), answer)
    g.load_state(best)

    assert torch.equal(g.forward(X), answer)
    assert g.filter("dense")._twin is None


def test_a_state_goes_from_graph_to_graph() -> None:
    """A graph of the same nodes that is built takes it."""
    g = fitted()
    h = Graph.somatize(Standardize() >> Dense(8) >> Dense(3), cache=None)
    h.fit(X, Y, epochs=0).load_state(g.state())

    assert torch.equal(h.forward(X), g.forward(X))


def test_a_state_goes_through_the_tools_of_torch() -> None:
    """`torch.save` and a careful `torch.load` keep it."""
    g, file = fitted(), io.BytesIO()
    torch.save(g.state(), file)  # noqa: TID251 - what users do
    file.seek(0)
    h = fitted(seed=1).load_state(
        torch.load(file, weights_only=True)  # noqa: TID251
    )

    assert torch.equal(h.forward(X), g.forward(X))


def test_what_was_written_to_a_frozen_copy_counts() -> None:
    """`state()` tells of the weights that answer."""
    g = fitted()
    with torch.no_grad():
        g.filter("dense")._module.bias.fill_(3.0)

    assert g.state()["dense"]["bias"].tolist() == [3.0] * 8


def test_tied_weights_are_one_tensor() -> None:
    """What is one weight in two places is copied once."""
    torch.manual_seed(0)
    g = Graph.somatize(Dense(6) >> Dense(6), cache=None).materialize(X)
    g.filter("dense_2")._module.weight = g.filter("dense")._module.weight
    state = g.state()

    assert state["dense"]["weight"] is state["dense_2"]["weight"]
    assert state["dense"]["weight"] is not g.filter("dense")._module.weight


WRONG: dict[str, tuple[Any, str]] = {
    "missing node": (lambda s: s.pop("dense"), "`dense` is missing"),
    "missing fit": (lambda s: s.pop("standardize"), "`standardize` is missing"),
    "unknown node": (lambda s: s.update(dens=s["dense"]), r"no node `dens`. Did you mean `dense`"),
    "missing weight": (lambda s: s["dense"].pop("bias"), "`dense` lacks `bias`"),
    "one too many": (lambda s: s["dense"].update(x=X), "`dense` has `x`"),
    "shape": (lambda s: s["dense"].update(bias=X), r"has shape \(64, 6\), and the module has \(8"),
    "no tensor": (lambda s: s["dense"].update(bias=3), "`bias` of `dense` is no tensor"),
    "no weights": (lambda s: s.update(dense=3), "`dense` is int"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_state_is_refused_whole(name: str) -> None:
    """Strictly nothing changes; otherwise a warning names what was left out."""
    change, reason = WRONG[name]
    g, other = fitted(), fitted(seed=1).state()
    before = g.state()
    change(other)
    with pytest.raises(InvalidInput, match=reason):
        g.load_state(other)
    after = g.state()
    with pytest.warns(CheckpointWarning, match=reason):
        g.load_state(other, strict=False)

    assert all(
        torch.equal(after[one]["weight"], before[one]["weight"]) for one in ("dense", "dense_2")
    )
    assert torch.equal(g.state()["dense_2"]["weight"], other["dense_2"]["weight"])


def test_a_module_that_is_not_built_takes_none() -> None:
    """The error says what to call first."""
    with pytest.raises(NotMaterialized, match=r"Call `g\.materialize"):
        Graph.somatize(Dense(3)).load_state({"dense": {}})


def test_plain_graphs_have_states_too() -> None:
    """Without modules a state is what the filters have learned."""

    class Count(Filter):
        def fit(self, x, y=None):
            return len(x)

        def forward(self, x, state):
            return state

    g = Graph.somatize(Count(), cache=None).fit([1, 2])
    h = Graph.somatize(Count(), cache=None).load_state(g.state())

    assert (g.state(), h.forward([0])) == ({"count": 2}, 2)
    with pytest.raises(InvalidInput, match="a mapping by node is wanted"):
        h.load_state(3)

"""A frozen graph whose weights are changed by hand answers with them, warm cache or not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from soma import Graph
from tests.training.filters import Dense, data

X, Y = (one.numpy() for one in data())


def halved(module: nn.Module) -> None:
    with torch.no_grad():
        module.weight.mul_(0.5)


def loaded(module: nn.Module) -> None:
    module.load_state_dict({name: one * 2 for name, one in module.state_dict().items()})


def moved(module: nn.Module) -> None:
    module.weight.data = module.weight.data + 1


def exchanged(module: nn.Module) -> None:
    module.weight = nn.Parameter(module.weight.detach() - 1)


EDITS = [halved, loaded, moved, exchanged]


def frozen(cache: str | Path | None) -> Graph:
    return Graph.somatize(Dense(3), cache=cache).fit(X, Y, epochs=1, seed=0, progress=False)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_the_module_in_use_is_answered_with_a_warm_cache_too(edit) -> None:
    """What was stored for the old weights is not given for the new ones."""
    answers = []
    for cache in (None, "memory"):
        g = frozen(cache)
        g.forward(X)
        g.forward(X)  # by a shortcut
        edit(g.filter("dense")._module)
        answers.append(g.forward(X))

    assert np.array_equal(*answers)
    assert not np.array_equal(answers[0], frozen(None).forward(X))


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_stores_nothing_under_the_old_weights(edit, tmp_path: Path) -> None:
    """Another graph with the old weights does not get what the edited one has stored."""
    g, other = frozen(tmp_path), frozen(tmp_path)
    edit(g.filter("dense")._module)
    g.forward(X)

    assert np.array_equal(other.forward(X), frozen(None).forward(X))


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_goes_on_into_training(edit) -> None:
    """`train` brings back the live module with what was written to its frozen copy."""
    g = frozen("memory")
    edit(g.filter("dense")._module)
    edited = g.filter("dense")._module.weight.detach().clone()
    g.train()

    assert torch.equal(g.filter("dense")._module.weight, edited)


def test_another_dtype_is_answered_with_a_warm_cache_too() -> None:
    """`g.to` moves the frozen copies, and stored answers of the old type stay behind."""
    g = frozen("memory")
    before = g.forward(X)
    state = g.get_node_state("dense")["weights_b64"]
    g.to(dtype=torch.float64)

    assert (before.dtype, g.forward(X).dtype) == (np.float32, np.float64)
    assert g.get_node_state("dense")["weights_b64"] != state
    assert np.array_equal(g.to(dtype=torch.float32).forward(X), before)


def test_another_dtype_is_no_edit_of_the_frozen_copy() -> None:
    """Live weights that were edited meanwhile are not overwritten when training goes on."""
    g = frozen("memory")
    with torch.no_grad():
        for weight in g.parameters():
            weight.zero_()
    g.to(dtype=torch.float64).train()

    assert all(not weight.any() for weight in g.parameters())

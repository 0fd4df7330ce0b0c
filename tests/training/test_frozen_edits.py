"""A frozen graph whose weights are changed by hand answers with them, warm cache or not."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import soma
from soma import Graph
from tests.training.filters import Dense, Wrap, data

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


class Scaled(nn.Module):
    """Has a plain attribute, a batch norm and a buffer that no state_dict holds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 3), nn.BatchNorm1d(3)
        self.temperature = 1.0
        self.register_buffer("shift", torch.zeros(1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x)) / self.temperature + self.shift


def warmer(module: nn.Module) -> None:
    module.temperature = 2.0


def other_mode(module: nn.Module) -> None:
    module.norm.train()


def other_epsilon(module: nn.Module) -> None:
    module.norm.eps = 0.5


def shifted(module: nn.Module) -> None:
    module.shift.add_(1)


def hooked(module: nn.Module) -> None:
    module.linear.register_forward_hook(lambda _, given, output: output * 0)


SETTINGS = [warmer, other_mode, other_epsilon, shifted, hooked]


def scaled(cache: str | Path | None) -> Graph:
    g = Graph.somatize(Wrap(lambda shape: Scaled()), cache=cache)
    g.fit(X, Y, epochs=1, seed=0, progress=False)
    g.forward(X)
    return g


@pytest.mark.parametrize("edit", SETTINGS)
def test_another_setting_of_the_module_in_use_is_answered_with_a_warm_cache_too(edit) -> None:
    """Attributes, modes, buffers and hooks of a module count as its weights do."""
    answers = []
    for cache in (None, "memory"):
        g = scaled(cache)
        edit(g.filter("wrap")._module)
        answers.append(g.forward(X))

    assert np.array_equal(*answers)
    assert not np.array_equal(answers[0], scaled(None).forward(X))


@pytest.mark.parametrize("edit", [warmer, other_epsilon, shifted])
def test_a_setting_that_was_frozen_anew_counts(edit) -> None:
    """What is edited in training is not answered by what the same weights gave before."""
    g = scaled("memory")
    before = g.forward(X)
    g.train()
    edit(g.filter("wrap")._module)
    g.freeze()

    assert not np.array_equal(g.forward(X), before)


def test_what_a_hook_makes_is_not_stored() -> None:
    """After the hook is gone the answer is the module's own."""
    g = scaled("memory")
    handle = g.filter("wrap")._module.register_forward_hook(lambda _, given, output: output * 0)
    assert not g.forward(X + 1).any()
    assert "a hook on its module waits to be called" in soma.why(g, "wrap")
    handle.remove()

    assert g.forward(X + 1).all()


def test_an_edited_copy_answers_for_itself() -> None:
    """A copy of a graph has weights and keys of its own."""
    g = frozen("memory")
    before = g.forward(X)
    other = deepcopy(g)
    halved(other.filter("dense")._module)

    assert not np.array_equal(other.forward(X), before)
    assert np.array_equal(g.forward(X), before)


def test_a_copy_is_no_edit() -> None:
    """Live weights of a copy that were edited are not overwritten by its frozen ones."""
    other = deepcopy(frozen("memory"))
    with torch.no_grad():
        for weight in other.parameters():
            weight.zero_()

    assert all(not weight.any() for weight in other.train().parameters())


def test_other_parts_go_on_into_training() -> None:
    """A module whose parts were exchanged while it was frozen is trained as it is."""
    g = Graph.somatize(Wrap(lambda shape: nn.Sequential(nn.Linear(6, 3))), cache="memory")
    g.fit(X, Y, epochs=1, progress=False)
    g.forward(X)
    module = g.filter("wrap")._module
    module[0] = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3))
    assert np.allclose(g.forward(X), module(torch.tensor(X)).detach())
    before = [one.clone() for one in module.parameters()]
    g.train()
    assert g.filter("wrap")._module is module
    g.fit(X, Y, epochs=1, progress=False)

    assert all(not torch.equal(one, old) for one, old in zip(g.parameters(), before, strict=True))

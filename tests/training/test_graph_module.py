"""`g.module()`: what it is made of, what it takes and gives, and whose weights it has."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, StackDataset

from soma import DifferentiableFilter, Filter, Graph, Inputs
from soma.errors import CompileError, InvalidInput, InvalidNodeId, NotFitted, NotMaterialized
from tests.training.filters import Concatenate, Dense, Gated, Rounded, Standardize, Wrap, data

X, Y = data()


class Twice(Dense):
    """Calls the `forward` it inherits, and tells its mode."""

    def forward(self, x: Any, state: Any = None) -> Any:
        output, _ = super().forward(x, state)
        return 2 * output, {"training": torch.tensor(self.training)}


class Double(Dense):
    """Its id is what every module of torch has as a method."""


class Undone(Filter):
    """A step that no gradient passes, for tensors and arrays."""

    def forward(self, x: Any, state: Any) -> Any:
        return x + 1


class Lookup(DifferentiableFilter):
    """Looks rows up, so its input stays integers."""

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Embedding(4, 2)


class Draws(Undone):
    """Opaque, and another answer each time."""

    _deterministic = False


def mixed(first: Filter | None = None) -> Graph:
    """Return a built graph with a fan-in and a filter that gives aux."""
    torch.manual_seed(0)
    body = (Gated(3) | Dense(2)) >> Concatenate(2)
    g = Graph.somatize(body if first is None else first >> body)
    return g.fit(X, epochs=0)


@pytest.mark.parametrize("first", [None, Standardize()])
def test_it_answers_as_the_graph_in_training(first: Filter | None) -> None:
    """Output and aux are those of `g.train(); g.forward(x)`, bit for bit."""
    g = mixed(first)
    output, aux = g.module()(X)
    expected, expected_aux = g.train().forward(X)

    assert output.equal(expected)
    assert list(aux) == list(expected_aux) == ["gated"]
    assert aux["gated"]["gate"].equal(expected_aux["gated"]["gate"])


def test_its_gradients_are_those_of_the_graph() -> None:
    """A loss of output and aux gives each weight the gradient that the graph gives it."""
    g = mixed()
    one, other = deepcopy(g).train(), g
    for output, aux in (one.forward(X), other.module()(X)):
        (output.square().sum() + aux["gated"]["gate"].sum()).backward()

    pairs = zip(one.parameters(), other.parameters(), strict=True)
    assert all(mine.grad.equal(theirs.grad) for mine, theirs in pairs)


def test_without_aux_it_gives_the_output_alone() -> None:
    """A tensor from one leaf, a dict by leaf from several."""
    one = Graph.somatize(Dense(2)).materialize(X).module()
    several = Graph.somatize(Dense(2) >> (Dense(3) | Dense(1))).materialize(X).module()

    assert type(one(X)) is Tensor
    assert {leaf: out.shape[1] for leaf, out in several(X).items()} == {"dense_2": 3, "dense_3": 1}


def test_weights_are_named_by_node() -> None:
    """Names are those of `g.named_parameters()`, for the nodes of an inlined graph too."""
    inner = Graph.somatize(Dense(3, nn.Tanh) >> Dense(2), name="body")
    g = Graph.somatize(inner >> Dense(1)).materialize(X)

    names = [name for name, _ in g.named_parameters()]
    assert list(g.module().state_dict()) == names
    assert names[0] == "body.dense.0.weight"


def test_it_shares_the_live_weights() -> None:
    """Parameters are the graph's own, and a state loaded into the module is in the graph."""
    g = Graph.somatize(Dense(2)).fit(X, Y[:, :2], epochs=1, progress=False)
    module = g.module()
    module.load_state_dict({name: one * 0 for name, one in module.state_dict().items()})

    assert all(a is b for a, b in zip(module.parameters(), g.parameters(), strict=True))
    assert g.forward(X).abs().sum() == 0  # not the frozen copy of before


def test_training_it_trains_a_frozen_graph() -> None:
    """After steps on the module's weights the graph answers with them."""
    g = Graph.somatize(Dense(2)).fit(X, Y[:, :2], epochs=1, progress=False)
    module = g.module().train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(X).square().mean().backward()
    optimizer.step()

    assert g.forward(X).equal(module(X).detach())


def test_modes_are_those_of_torch() -> None:
    """It starts in the mode of the graph; in eval filters know, and gradients are still live."""
    g = Graph.somatize(Twice(2)).materialize(X)
    module = g.module()
    output, aux = module(X)
    inside = module.train()(X)[1]["twice"]["training"]

    assert output.requires_grad
    assert not aux["twice"]["training"]
    assert inside
    assert (g.train().module().training, g.eval().module().training) == (True, False)


def test_a_part_may_be_in_eval_by_itself() -> None:
    """`module.node.eval()` keeps one node's module and its filter in eval."""
    module = Graph.somatize(Twice(2)).materialize(X).module().train()
    module.get_submodule("twice").eval()

    assert not module(X)[1]["twice"]["training"]


def test_it_goes_on_after_an_opaque_prefix() -> None:
    """After opaque filters it takes what they give, and what `g.prefix` gives."""
    g = Graph.somatize(Undone() >> Dense(2)).materialize(X)
    module = g.module()

    assert module.reads == ("undone",)
    assert module(g.prefix(X)).equal(module(X + 1))
    assert module(g.prefix(X.numpy())).equal(module(X + 1))


def test_it_reads_several_nodes_by_name() -> None:
    """Where it reads several values it takes a dict; one that lacks a node is named."""
    g = Graph.somatize((Rounded() | Undone()) >> Concatenate(2)).materialize(X)
    module = g.module()
    parts = {"rounded": torch.round(X * 4) / 4, "undone": X + 1}

    assert module(g.prefix(X)).equal(module(parts))
    for wrong in (X, {"rounded": X, "undonne": X}):
        with pytest.raises(InvalidInput, match=r"it reads `rounded` and `undone`, .*g\.prefix"):
            module(wrong)


def test_tensors_of_a_prefix_make_a_dataset() -> None:
    """`tensors` gives float arrays the type of the weights, so that a DataLoader batches them."""
    g = Graph.somatize((Undone() | Undone()) >> Concatenate(2)).materialize(X)
    module = g.module()
    prefix = g.prefix(X.double().numpy())
    batch = next(iter(DataLoader(StackDataset(**module.tensors(prefix)), batch_size=len(X))))

    assert batch["undone"].dtype == torch.float32
    assert module(batch).equal(module(prefix))


def test_tensors_of_one_value_are_a_tensor() -> None:
    """A module that reads one node takes a tensor, and `tensors` gives one; indices stay."""
    g = Graph.somatize(Undone() >> Dense(2)).materialize(X)
    assert g.module().tensors(g.prefix(X.numpy())).equal(X + 1)

    rows = np.array([[0, 3], [1, 2]])
    g = Graph.somatize(Lookup()).materialize(rows)
    assert g.module().tensors(rows).dtype == torch.int64


def test_plain_roots_share_an_input() -> None:
    """Roots without a prefix get one value, or their own from an `Inputs` or a dict."""
    g = Graph.somatize((Dense(2) | Dense(3)) >> Concatenate(2)).materialize(X)
    module = g.module()
    own = {"dense": X, "dense_2": 2 * X}

    assert module(X).equal(module({"dense": X, "dense_2": X}))
    assert module(own).equal(module(Inputs(own)))
    assert not module(own).equal(module(X))


def test_an_opaque_tail_is_left_out() -> None:
    """What no module comes after is not run; the output is the module's before it."""
    g = Graph.somatize(Dense(2) >> Rounded()).materialize(X)

    assert g.module()(X).equal(g.filter("dense")._module(X))


@pytest.mark.parametrize(
    ("g", "told"),
    [
        (Graph.somatize(Dense(2) >> Rounded() >> Undone() >> Dense(2)), "`rounded` and `undone`"),
        (Graph.somatize(Draws() >> Dense(2)), "`draws` stands inside"),
        (Graph.somatize(Standardize()), "no node of this graph has a torch module"),
    ],
)
def test_what_is_no_one_module_is_refused(g: Graph, told: str) -> None:
    """Opaque nodes between modules are named."""
    with pytest.raises(CompileError, match=told):
        g.module()


def test_it_is_made_of_a_ready_graph() -> None:
    """Modules that are not built and filters that are not fitted are named."""
    with pytest.raises(NotMaterialized, match="`dense` has no module yet"):
        Graph.somatize(Dense(2)).module()
    with pytest.raises(NotFitted, match="`standardize`"):
        Graph.somatize(Standardize() >> Dense(2)).module()


def test_names_that_torch_cannot_take_are_refused() -> None:
    """A node named like a method of a module, or like a part of another node, is told so."""
    nested = Graph()
    nested.node("a", Dense(2))
    nested.node("a.b", Dense(2))
    nested.connect("a", "a.b")
    for g in (Graph.somatize(Double(2)), nested):
        g.materialize(X)
        with pytest.raises(InvalidNodeId, match="another id"):
            g.module()


def test_a_module_may_be_copied() -> None:
    """A deep copy has weights of its own and answers the same."""
    module = mixed().module()
    twin = deepcopy(module)
    with torch.no_grad():
        next(module.parameters()).zero_()

    assert not twin(X)[0].equal(module(X)[0])
    assert next(twin.parameters()).abs().sum() > 0


def test_tied_weights_stay_tied() -> None:
    """A module that stands in two nodes is one module here too."""
    tied = nn.Linear(6, 6)
    module = Graph.somatize(Wrap(lambda s: tied) >> Wrap(lambda s: tied)).materialize(X).module()

    assert len(list(module.parameters())) == 2
    assert module(X).equal(tied(tied(X)))


def test_an_error_names_the_node() -> None:
    """What fails inside says in which node."""

    class Fails(DifferentiableFilter):
        def build_module(self, input_shape: Any) -> nn.Module:
            return nn.Linear(6, 2)

    module = Graph.somatize(Fails()).materialize(X).module()
    with pytest.raises(RuntimeError) as caught:
        module(X[:, :3])
    assert caught.value.__notes__ == ["in node `fails` of a graph's module"]

"""Building modules from one sample."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from soma import DifferentiableFilter, Filter, Graph, errors
from tests.training.filters import Concatenate, Dense, Rounded, Standardize, Wrap, data

X, Y = data()


class Itself(DifferentiableFilter):
    """Builds its module inside its own forward, as told by the input."""

    def __init__(self, make) -> None:
        super().__init__(make=make)

    def build_module(self, input_shape):
        return self.make(input_shape)

    def forward(self, x, state=None):
        self.materialize(tuple(x.shape[1:]))
        output = self._module(x)
        return (output, {}) if self.training else (output.detach().tolist(), {})


def test_a_fan_in_gets_a_dict_of_shapes() -> None:
    """Each predecessor's shape is there, by id, in edge order."""
    seen = []

    class Looking(Concatenate):
        def build_module(self, input_shape):
            seen.append(input_shape)
            return super().build_module(input_shape)

    Graph.somatize((Dense(5) | Dense(4)) >> Looking(3)).materialize(X)
    assert seen == [{"dense": (5,), "dense_2": (4,)}]
    assert list(seen[0]) == ["dense", "dense_2"]


def test_a_run_of_the_module_tells_what_shapes_do_not() -> None:
    """An unknown output shape, and a wrong one, are found by running the module."""

    class Wrong(Dense):
        def output_shape(self, input_shape):
            return (99,)

    g = Graph.somatize(Wrap(lambda s: nn.Linear(s[-1], 5)) >> Wrong(4) >> Dense(2))
    g.materialize(X)
    assert g.forward(X).shape == (64, 2)


@pytest.mark.parametrize("inside", [False, True])
def test_lazy_layers_are_built_and_none_of_their_weights_is_missing(inside: bool) -> None:
    """Weights that appear only in the first run are in `parameters()` after materialize."""

    def lazy(_: object) -> nn.Module:
        return nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))

    g = Graph.somatize(Itself(lazy) if inside else Wrap(lazy))
    g.materialize(X)
    assert [one.numel() for one in g.parameters()] == [24, 4, 8, 2]


def test_building_leaves_no_trace() -> None:
    """The trial run moves neither generators nor buffers nor modes."""
    torch.manual_seed(3)
    nn.Linear(6, 8)
    after_building = torch.get_rng_state()
    torch.manual_seed(3)
    g = Graph.somatize(
        Wrap(lambda s: nn.Sequential(nn.Linear(s[-1], 8), nn.BatchNorm1d(8), nn.Dropout(0.5)))
    )
    g.materialize(X)

    assert torch.equal(torch.get_rng_state(), after_building)
    norm = g.filter("wrap")._module[1]
    assert norm.num_batches_tracked == 0
    assert torch.equal(norm.running_mean, torch.zeros(8))
    assert not norm.training


def test_materialize_twice_keeps_the_weights() -> None:
    """A second call builds nothing."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    before = [one.clone() for one in g.parameters()]
    g.materialize(X)
    assert all(torch.equal(one, other) for one, other in zip(g.parameters(), before, strict=True))


@pytest.mark.parametrize("sample", [X, X.numpy(), X.tolist()], ids=["tensor", "array", "list"])
def test_any_numeric_sample_builds(sample: object) -> None:
    """Tensors, arrays and lists are all samples."""
    g = Graph.somatize(Dense(3))
    assert [one.shape for one in g.materialize(sample).parameters()] == [(3, 6), (3,)]


def test_an_unfitted_filter_upstream_is_named() -> None:
    """The error says how to prepare for a loop."""
    g = Graph.somatize(Rounded() >> Standardize() >> Dense(3))
    with pytest.raises(errors.NotFitted, match=r"`standardize` .*g\.fit\(x, y, epochs=0\)"):
        g.materialize(X)


def test_a_module_nobody_built_is_named_when_an_optimizer_is_made() -> None:
    """The optimizer would silently leave those weights out."""
    g = Graph.somatize(Dense(3) >> Dense(2))
    g.filter("dense").materialize((6,))
    with pytest.raises(errors.NotMaterialized, match=r"`dense_2` has no module .*materialize"):
        g.make_optimizer(torch.optim.SGD, lr=0.1)


def test_weights_outside_the_module_are_refused() -> None:
    """A parameter on the filter itself would be in no optimizer."""

    class Outside(Dense):
        def __init__(self, width: int) -> None:
            super().__init__(width)
            self.temperature = nn.Parameter(torch.ones(1))

    with pytest.raises(errors.NotMaterialized, match=r"`outside` holds .*`temperature`"):
        Graph.somatize(Outside(3)).materialize(X)


def test_a_wrong_module_is_refused() -> None:
    """`build_module` has to return a module."""
    with pytest.raises(errors.InvalidOutput, match=r"build_module` returned None"):
        Graph.somatize(Wrap(lambda _: None)).materialize(X)


def test_a_wrong_width_is_told_with_node_and_shapes() -> None:
    """torch's own error comes with the node and the shape of its input."""
    g = Graph.somatize(Dense(4) >> Wrap(lambda _: nn.Linear(5, 2)))
    with pytest.raises(RuntimeError, match="mat1 and mat2") as caught:
        g.materialize(X)
    assert "`wrap` (Wrap, built for samples of shape (4,))" in caught.value.__notes__[0]
    assert "shape (64, 4)" in caught.value.__notes__[0]


def test_parameters_are_in_topological_order_and_named_by_node() -> None:
    """Names are `node.parameter`, whatever order the nodes were declared in."""
    g = Graph()
    g.node("late", Dense(2))
    g.node("early", Dense(4))
    g.connect("early", "late")
    g.materialize(X)
    names = ["early.weight", "early.bias", "late.weight", "late.bias"]
    assert [name for name, _ in g.named_parameters()] == names


def test_an_executor_does_not_change_what_is_drawn() -> None:
    """Weights are drawn in the order of the nodes, also where branches run side by side."""
    drawn = []
    for executor in (None, "threads"):
        torch.manual_seed(0)
        g = Graph.somatize(Dense(50) | Dense(50) | Dense(50) | Dense(50), executor=executor)
        g.materialize(X)
        drawn.append(torch.cat([one.flatten() for one in g.parameters()]))

    assert torch.equal(*drawn)


def test_a_fan_in_that_is_built_as_a_chain_is_told() -> None:
    """The note says that shapes come by predecessor."""
    g = Graph.somatize((Dense(5) | Dense(4)) >> Dense(3))
    with pytest.raises(KeyError) as caught:
        g.materialize(X)
    assert "this node is a fan-in, so shapes come by predecessor" in caught.value.__notes__[0]
    assert "during build" in caught.value.__notes__[1]


def test_samples_that_are_single_numbers_are_told() -> None:
    """A column without an axis of its own has no width to build for."""
    with pytest.raises(IndexError) as caught:
        Graph.somatize(Dense(3)).materialize(X[:, 0])
    assert "`x[:, None]` makes it a row of one" in caught.value.__notes__[0]


class Late(nn.Module):
    """Draws its weight when it is first run, and counts in a buffer that it exchanges."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(()))
        self.weight = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.weight is None:
            self.weight = nn.Parameter(torch.randn(x.shape[1], 2))
        self.runs = self.runs + 1
        return x @ self.weight


def test_weights_drawn_in_the_first_run_differ_from_node_to_node() -> None:
    """The generators move on where the run draws weights, and buffers are put back."""
    g = Graph.somatize(Wrap(lambda _: Late()) | Wrap(lambda _: Late()))
    g.materialize(X)
    first, second = (filter._module for _, filter in g.filters())

    assert not torch.equal(first.weight, second.weight)
    assert first.runs == second.runs == 0


def test_building_writes_nothing_into_the_sample() -> None:
    """A first module that works in place gets a copy, then and in inference."""
    sample = X.clone()
    g = Graph.somatize(Wrap(lambda s: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(s[-1], 2))))
    g.fit(sample, Y[:, :2], epochs=2, validation=(sample, Y[:, :2]), progress=False)
    g.forward(sample)

    assert torch.equal(sample, X)


def test_plain_filters_see_the_same_kind_in_fit_and_inference() -> None:
    """Below a module a filter fits on arrays where the graph was given arrays."""
    seen = []

    class Center(Filter):
        def fit(self, x, y=None):
            seen.append(type(x))
            return x.mean(0)

        def forward(self, x, state):
            seen.append(type(x))
            return x - state

    g = Graph.somatize(Dense(3) >> Center())
    g.fit(X.numpy(), epochs=0)
    g.forward(X.numpy())
    assert set(seen) == {np.ndarray}


def test_an_input_without_a_shape_builds_for_none() -> None:
    """Text has no shape; a `forward` of its own still finds its module."""

    class Length(DifferentiableFilter):
        def build_module(self, input_shape):
            assert input_shape is None
            return nn.Linear(1, 2)

        def forward(self, x, state=None):
            return self._module(torch.tensor([[float(len(text))] for text in x])), {}

    g = Graph.somatize(Length())
    g.materialize(["a", "bb"])
    assert g.forward(["a", "bb"]).shape == (2, 2)


def test_a_node_added_while_training_is_in_training() -> None:
    """Its dropout is on, as in the nodes that were there."""
    g = Graph.somatize(Dense(8))
    g.materialize(X)
    g.train()
    g.node("late", Wrap(lambda s: nn.Dropout(0.5)))
    g.connect("dense", "late")
    g.materialize(X)
    assert g.filter("late")._module.training


def test_a_dtype_given_to_a_module_afterwards_counts() -> None:
    """Lists become tensors of the dtype that the module has by now."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    g.forward(X.tolist())
    g.filter("dense")._module.double()
    assert len(g.forward(X.tolist())) == 64


NO_NUMBERS = [
    ([["a", "b"]], "list of 1 has none. A module wants a tensor, an array or a list of numbers"),
    ("abc", "str of 3 has none"),
    ([[1.0, 2.0], [3.0]], "list of 2 has none"),
    (np.array([["a", "b"]]), "convert anything else in a filter before it"),
    (pd.DataFrame({"a": [1.0]}), "a frame for instance with `x.to_numpy(dtype='float32')`"),
    (X.double(), "computes in float32 and was given a tensor of float64"),
    (X.int(), "computes in float32 and was given a tensor of int32"),
    (X.to("meta"), "is on cpu and was given a tensor on meta"),
]


@pytest.mark.parametrize(("x", "told"), NO_NUMBERS, ids=range(len(NO_NUMBERS)))
def test_what_a_module_cannot_read_is_told_when_it_is_built(x: object, told: str) -> None:
    """The error of torch has a note on what came and what to do."""
    with pytest.raises((TypeError, RuntimeError)) as caught:
        Graph.somatize(Dense(5)).materialize(x)
    assert told in caught.value.__notes__[0]
    assert "in node `dense`" in caught.value.__notes__[1]


def test_what_a_built_module_cannot_read_is_told() -> None:
    """A tensor of doubles for a module of floats has the same note in inference."""
    g = Graph.somatize(Dense(5)).materialize(X)
    with pytest.raises(RuntimeError) as caught:
        g.forward(X.double())
    assert "convert yours with `x.to(torch.float32)`" in caught.value.__notes__[0]

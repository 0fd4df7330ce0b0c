"""What the compiler says about gradients against what autograd does."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from soma import Compiler, DifferentiableFilter, Filter, Graph

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def total(x: object) -> torch.Tensor:
    return torch.stack(list(x.values())).sum(0) if isinstance(x, dict) else x


class Module(DifferentiableFilter):
    """A node with weights."""

    def build_module(self, input_shape):
        return nn.Linear(3, 3)

    def forward(self, x, state=None):
        return self._module(total(x)), {}


class Passing(Filter):
    """A plain node that gradients pass."""

    _differentiable = True

    def forward(self, x, state):
        return torch.tanh(total(x))


class Opaque(Filter):
    """A plain node that gradients do not pass, though it is made of torch operations."""

    _kind = "opaque"

    def forward(self, x, state):
        return total(x) * 2


class Untouched(Filter):
    """An opaque node that hands its input on as it is."""

    def forward(self, x, state):
        return total(x)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    kinds = draw(
        st.lists(st.sampled_from([Module, Passing, Opaque, Untouched]), min_size=1, max_size=10)
    )
    g = Graph()
    names = [g.node(f"n{index}", kind()) for index, kind in enumerate(kinds)]
    for index, name in enumerate(names):
        sources = draw(st.sets(st.sampled_from(names[:index]), max_size=3)) if index else set()
        for source in sorted(sources):
            g.connect(source, name)
    return g


def cut_off_by_the_compiler(g: Graph) -> set[str]:
    labels = [label for one in Compiler().check_gradient_flow(g) for label in one.labels]
    cut_off = {label.node for label in labels if label.role == "cut-off"}
    return {node for node in cut_off if isinstance(g.filter(node), Module)}


def without_gradient(g: Graph, **inputs: object) -> set[str]:
    g.materialize(X)
    g.train()
    output, _ = g.forward(X)
    outputs = output.values() if isinstance(output, dict) else [output]
    reached = [one.sum() for one in outputs if one.requires_grad]
    if reached:
        g.backward(None, reached)
    modules = [(node, filter._module) for node, filter in g.filters() if isinstance(filter, Module)]
    return {node for node, module in modules if module.weight.grad is None}


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_a_node_is_reported_as_cut_off_exactly_when_it_gets_no_gradient(g: Graph) -> None:
    """On random graphs the labels and autograd name the same nodes."""
    assert cut_off_by_the_compiler(g) == without_gradient(g)


@pytest.mark.parametrize("opaque", [Opaque, Untouched])
def test_an_opaque_node_cuts_even_what_it_hands_on_unchanged(opaque: type[Filter]) -> None:
    """A filter that is not differentiable passes no gradient, whatever it is made of."""
    g = Graph.somatize(Module() >> opaque() >> Module())
    assert without_gradient(g) == {"module"}
